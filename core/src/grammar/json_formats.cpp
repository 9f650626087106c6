#include "grammar/json_formats.hpp"

namespace patchbay::grammar {
namespace {

const std::string kYear = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
const std::string kLeapYear = // divisible by 4 and no century, or by 400
    "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)";
const std::string kDate = "(" + kYear +
                          "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
                          "|02-(0[1-9]|1[0-9]|2[0-8]))|" +
                          kLeapYear + "-02-29)";
const std::string kTime =
    R"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))";
// Of 2 or 3, of 4, of 5 to 63 characters, or one. Without hyphens in both places 3 and 4: such a label must be Punycode
// or is none (RFC 5891, 4.2.3.1).
const std::string kLabel = "[a-z0-9]([a-z0-9-]?[a-z0-9]|[a-z0-9-]{2}[a-z0-9]|"
                           "[a-z0-9-]([a-z0-9][a-z0-9-]|-[a-z0-9])[a-z0-9-]{0,58}[a-z0-9])?";
const std::string kByte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const std::string kIpv4 = kByte + R"((\.)" + kByte + "){3}";
const std::string kPointer = "(/([a-zA-Z0-9_.-]|~[01])*)*";
const std::string kGroup = "[0-9a-fA-F]{1,4}";

std::string ipv6() { // with at most one "::", which stands for at least one group
    std::string out = "(" + kGroup + ":){7}" + kGroup + "|::";
    for (int before = 0; before <= 7; ++before)
        for (int after = 0; before + after <= 7; ++after) {
            if (before + after == 0) continue;
            const std::string head =
                before == 0 ? "" : kGroup + "(:" + kGroup + "){" + std::to_string(before - 1) + "}";
            const std::string tail = after == 0 ? "" : "(" + kGroup + ":){" + std::to_string(after - 1) + "}" + kGroup;
            out += "|" + head + "::" + tail;
        }
    return out;
}

}  // namespace

std::optional<std::string> format_regex(std::string_view format) {
    if (format == "date") return kDate;
    if (format == "time") return kTime;
    if (format == "date-time") return kDate + "T" + kTime;
    if (format == "duration")
        return std::string(
            "P([0-9]{1,4}W|([0-9]{1,4}Y([0-9]{1,4}M([0-9]{1,4}D)?)?|[0-9]{1,4}M([0-9]{1,4}D)?|[0-9]{1,4}D)"
            "(T([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S))?"
            "|T([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S))");
    if (format == "email" || format == "idn-email")
        return R"([a-zA-Z0-9_+-]{1,32}(\.[a-zA-Z0-9_+-]{1,16}){0,2}@)" + kLabel + R"((\.)" + kLabel +
               R"()?\.[a-z]{2,24})";
    if (format == "hostname" || format == "idn-hostname") return kLabel + R"((\.)" + kLabel + "){0,2}";
    if (format == "ipv4") return kIpv4;
    if (format == "ipv6") return ipv6();
    if (format == "uri" || format == "iri" || format == "uri-reference" || format == "iri-reference" ||
        format == "uri-template")
        return R"((https?|ftp)://)" + kLabel + R"((\.)" + kLabel +
               R"(){0,3}(:[1-9][0-9]{0,3})?(/[a-zA-Z0-9._~-]*)*(\?[a-zA-Z0-9._~=&-]*)?(#[a-zA-Z0-9._~-]*)?)";
    if (format == "uuid")
        return std::string("[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}");
    if (format == "json-pointer") return kPointer;
    if (format == "relative-json-pointer") return "(0|[1-9]{1,4})(#|/[a-z0-9]{1,9}" + kPointer + ")";
    if (format == "regex") return std::string(R"(\^?([a-zA-Z0-9_ -]|\\[dws.]|\[[a-z]+\]\+?){0,64}\$?)");
    return std::nullopt;
}

}  // namespace patchbay::grammar
