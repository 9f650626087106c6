// A scheduler whose plan() calls what the host offers to any thread, from several at once, and leaves a reason of
// failure that one of them gave.
#include <thread>
#include <vector>

#include "patchbay/sdk/scheduler.hpp"

namespace {

class Crowd {
  public:
    static constexpr uint32_t kThreads = 4, kCalls = 500;

    explicit Crowd(const patchbay::Context& context)
        : host_(&context.host()), clock_(context.host()), metrics_(context.host()) {}

    void plan(const patchbay::SchedulerStep&, patchbay::Plan&) {
        std::vector<std::thread> threads;
        for (uint32_t t = 0; t < kThreads; ++t) threads.emplace_back([this] { speak(); });
        for (std::thread& thread : threads) thread.join();
    }

  private:
    void speak() const {
        uint64_t before = clock_.now_ns();
        for (uint32_t i = 0; i < kCalls; ++i) {
            patchbay::log(*host_, PB_LOG_INFO, "a word of one among many");
            host_->error(host_->ctx, patchbay::str("the reason of one among many"));
            metrics_.add("words");
            metrics_.set("latest", i);
            const uint64_t now = clock_.now_ns();
            if (now < before) metrics_.add("steps_back");
            before = now;
        }
    }

    const pb_host* host_;
    patchbay::HostClock clock_;
    patchbay::Metrics metrics_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Crowd>({.name = "crowd", .version = "1.0.0", .summary = "many talk at once"}))
