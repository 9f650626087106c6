#include "text/chat_template/dates.hpp"

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "base/date_text.hpp"

namespace patchbay::text::chat {
namespace {

// What strftime() does not know or would fill: %f is microseconds; %z, %:z and %Z are empty.
std::string with_own_codes(const std::string& format, const std::string& microseconds) {
    std::string out;
    for (size_t at = 0; at < format.size(); ++at) {
        const std::string_view rest = std::string_view(format).substr(at);
        if (rest.starts_with("%f")) out += microseconds, at += 1;
        else if (rest.starts_with("%z") || rest.starts_with("%Z")) at += 1;
        else if (rest.starts_with("%:z")) at += 2;
        else {
            out += format[at];
            if (rest[0] == '%' && rest.size() > 1) out += format[++at];
        }
    }
    return out;
}

}  // namespace

std::string local_date(uint64_t unix_us, const std::string& format) {
    const auto seconds = static_cast<std::time_t>(unix_us / 1'000'000);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    char microseconds[8];
    std::snprintf(microseconds, sizeof microseconds, "%06u", static_cast<unsigned>(unix_us % 1'000'000));
    return date_text(parts, with_own_codes(format, microseconds));
}

}  // namespace patchbay::text::chat
