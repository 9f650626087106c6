#include "cli/status_tables.hpp"

#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/printable.hpp"
#include "cli/print_table.hpp"

namespace patchbay::cli {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;
constexpr size_t kHashDigits = 12; // enough to distinguish two builds

std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

std::string reason_of(const Json& swap) {
    const std::string phase = text_of(swap.at("phase")), reason = text_of(swap.at("reason"));
    if (phase.empty()) return "-";
    return "in phase " + phase + (reason.empty() ? "" : ": " + reason);
}

void print_slots(const Json& slots) {
    Rows rows = {{"SLOT", "PLUGIN", "VERSION", "DIGEST", "GENERATION"}};
    for (const Json& s : slots)
        rows.push_back({text_of(s.at("kind")), text_of(s.at("plugin")), text_of(s.at("version")),
                        text_of(s.at("sha256")).substr(0, kHashDigits),
                        text_of(s.at("generation")) + (s.at("on_probation").get<bool>() ? ", on probation" : "")});
    std::cout << '\n';
    print_table(rows);
}

void print_configuration(const Json& settings) {
    if (settings.empty()) return;
    Rows rows = {{"SETTING", "REQUESTED", "EFFECTIVE", "REASON"}};
    for (const Json& s : settings)
        rows.push_back({text_of(s.at("key")), text_of(s.at("requested")), text_of(s.at("effective")),
                        text_of(s.at("reason"))});
    std::cout << '\n';
    print_table(rows);
}

void print_swaps(const Json& swaps) {
    Rows rows = {{"SWAP", "FROM", "TO", "OUTCOME", "STEP", "PAUSE", "REASON"}};
    for (const Json& s : swaps.at("pending"))
        rows.push_back({text_of(s.at("kind")), s.at("from").is_null() ? "-" : text_of(s.at("from")),
                        text_of(s.at("plugin")), text_of(s.at("state")), "-", "-", "-"});
    for (const Json& s : swaps.at("last")) {
        const auto step = s.at("step").get<uint64_t>();
        const Json& number = s.at("transaction"); // of several that succeed or fail together
        rows.push_back({text_of(s.at("kind")) + (number.is_null() ? "" : " (transaction " + number.dump() + ")"),
                        text_of(s.at("from").at("plugin")), text_of(s.at("to").at("plugin")),
                        text_of(s.at("outcome")), step ? std::to_string(step) : "-",
                        step ? std::to_string(static_cast<int64_t>(s.at("pause_us").get<double>() + 0.5)) + " us" : "-",
                        reason_of(s)});
    }
    if (rows.size() == 1) return;
    std::cout << '\n';
    print_table(rows);
}

}  // namespace

void print_status(const Json& s) {
    const Json &queues = s.at("queues"), &pages = s.at("pages");
    const std::string reason = text_of(s.at("reason"));
    std::cout << printable(text_of(s.at("model").at("name"))) << ": " << text_of(s.at("state"))
              << (reason.empty() ? "" : ": " + printable_message(reason)) << ", " << s.at("steps") << " steps ("
              << printable(text_of(s.at("task"))) << ", pid " << s.at("pid") << ", patchbay "
              << printable(text_of(s.at("version"))) << ")\n";
    std::cout << "requests: " << queues.at("running") << " running, " << queues.at("waiting") << " waiting, "
              << queues.at("inbox") << " in the inbox\n";
    std::cout << "pages: " << pages.at("used") << " used, " << pages.at("cached") << " cached, " << pages.at("free")
              << " free of " << pages.at("total") << '\n';
    print_slots(s.at("slots"));
    print_configuration(s.at("configuration"));
    print_swaps(s.at("swaps"));
}

std::string swap_text(const Json& s) {
    std::string out = "swap " + text_of(s.at("kind")) + " " + text_of(s.at("from").at("plugin")) + "→" +
                      text_of(s.at("to").at("plugin")) + ": " + text_of(s.at("outcome"));
    if (!s.at("phase").is_null()) out += " " + reason_of(s);
    return out;
}

}  // namespace patchbay::cli
