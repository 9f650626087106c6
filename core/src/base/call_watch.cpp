#include "base/call_watch.hpp"

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

namespace patchbay {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

struct Seen {
    const char* component;
    const char* call;
    size_t length;
    uint64_t step;
    bool operator==(const Seen&) const = default;
};

// The thread writes without regard to us, so that a call costs nothing. What is read of a record that changes at that
// moment may be of two calls; it is then compared with the next reading, and never taken for text.
__attribute__((no_sanitize("thread"))) Seen look_at(const CallRecord& record) {
    const auto* const now = reinterpret_cast<const volatile std::byte*>(&record);
    std::array<std::byte, sizeof(CallRecord)> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = now[i];
    const auto seen = std::bit_cast<CallRecord>(bytes);
    return {seen.component, seen.call.data(), seen.call.size(), seen.step};
}

std::string text_of(const Seen& s, uint64_t limit_ns) {
    const uint64_t ms = limit_ns / kMillisecond;
    const std::string limit = ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
    std::string out = s.component;
    out.append(": ").append(s.call, s.length).append(": did not return within ").append(limit);
    if (s.step > 0) out += " in step " + std::to_string(s.step);
    return out;
}

}  // namespace

CallWatch::CallWatch(LimitNs limit, std::function<void(const std::string&)> overdue, const Clock* clock)
    : limit_(std::move(limit)), overdue_(std::move(overdue)), clock_(clock ? *clock : real_),
      thread_([this, &watched = current_call()] { watch(watched); }) {}

CallWatch::~CallWatch() {
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void CallWatch::watch(const CallRecord& watched) {
    constexpr auto kPause = std::chrono::milliseconds(50);
    constexpr uint64_t kStoppedNs = 1'000 * kMillisecond; // between two looks: then we did not run, nor did the call
    std::optional<Seen> before;
    uint64_t since_ns = 0, looked_ns = 0;
    for (std::unique_lock lock(mutex_); !changed_.wait_for(lock, kPause, [&] { return ended_; });) {
        const Seen now = look_at(watched);
        const uint64_t time_ns = clock_.now_ns(), limit_ns = limit_();
        const bool stopped = time_ns - std::exchange(looked_ns, time_ns) > kStoppedNs;
        if (!before || *before != now || stopped) {
            before = now;
            since_ns = time_ns;
        } else if (now.component && limit_ns > 0 && time_ns - since_ns >= limit_ns) {
            lock.unlock();
            return overdue_(text_of(now, limit_ns));
        }
    }
}

}  // namespace patchbay
