#include "base/clock.hpp"

#include <chrono>
#include <ctime>
#include <thread>

#include "base/date_text.hpp"

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

uint64_t unix_now_us() {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
}

std::string utc_now(const char* format) {
    const auto now = static_cast<std::time_t>(unix_now_us() / 1'000'000);
    std::tm parts{};
    gmtime_r(&now, &parts);
    return date_text(parts, format);
}

}  // namespace patchbay
