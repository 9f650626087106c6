// What enters and leaves the prefix cache, for a listener: at the end of each step.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "engine/loop/step_observer.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

struct StepReport;

class KvEventFeed final : public StepObserver {
  public:
    using Listener = std::function<void(std::span<const kv::CacheEvent>, uint64_t now_ns)>;

    KvEventFeed(kv::KvCache& kv, const Clock& clock) : kv_(kv), clock_(clock) {}

    void listen(Listener listener) {
        kv_.events().record();
        listener_ = std::move(listener);
    }
    void flush() {
        if (!listener_) return;
        const std::vector<kv::CacheEvent> events = kv_.events().take();
        if (!events.empty()) listener_(events, clock_.now_ns());
    }
    void on_end(const StepReport&) override { flush(); }

  private:
    kv::KvCache& kv_;
    const Clock& clock_;
    Listener listener_;
};

}  // namespace patchbay::engine
