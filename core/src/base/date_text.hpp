// The time of day, and dates as text. Never for measuring: that is base/clock.hpp.
#pragma once
#include <cstdint>
#include <ctime>
#include <string>

namespace patchbay {

uint64_t unix_now_us(); // clock.cpp: since 1970, in UTC

// By a format of strftime, of whatever length up to 64 KiB.
inline std::string date_text(const std::tm& parts, const std::string& format) {
    const std::string marked = format + '.'; // so that 0 says that there is no room, and not an empty text
    for (size_t room = 64; room <= 64u << 10; room *= 2) {
        std::string text(room, '\0');
        const size_t length = std::strftime(text.data(), room, marked.c_str(), &parts);
        if (length == 0) continue;
        text.resize(length - 1);
        return text;
    }
    return {};
}

}  // namespace patchbay
