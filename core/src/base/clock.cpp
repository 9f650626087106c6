#include "base/clock.hpp"

#include <chrono>
#include <ctime>
#include <thread>

namespace patchbay {

uint64_t RealClock::now_ns() const {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}

void RealClock::wait_until_ns(uint64_t when_ns) {
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(when_ns)));
}

pb_clock clock_service(Clock& clock) {
    return {sizeof(pb_clock), PB_CLOCK_REVISION, &clock,
            [](void* ctx) { return static_cast<const Clock*>(ctx)->now_ns(); }};
}

std::string utc_now(const char* format) {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    gmtime_r(&now, &parts);
    const std::string marked = std::string(format) + '.'; // so that 0 says that there is no room, and not an empty text
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
