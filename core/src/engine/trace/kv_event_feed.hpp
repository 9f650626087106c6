// What enters and leaves the prefix cache, for a listener and a file, of which there may be either, both or none: at
// the end of each step.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "engine/loop/step_observer.hpp"
#include "engine/trace/kv_event_file.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

struct StepReport;

class KvEventFeed final : public StepObserver {
  public:
    using Listener = std::function<void(std::span<const kv::CacheEvent>, uint64_t now_ns)>;

    KvEventFeed(kv::KvCache& kv, const Clock& clock) : kv_(kv), clock_(clock) {}

    void listen(Listener listener) {
        begin();
        listener_ = std::move(listener);
    }
    void write_to(std::unique_ptr<KvEventFile> file) {
        begin();
        file_ = std::move(file);
    }
    void go_on_with(KvEventFeed& other) { // in its file, as another cache, which is empty
        write_to(other.give_file());
        const kv::CacheEvent cleared{.kind = kv::CacheEvent::Kind::kCleared, .key = {}, .parent = {}, .tokens = {}};
        write({&cleared, 1});
    }
    bool has_file() const { return file_ != nullptr; }
    std::unique_ptr<KvEventFile> give_file() { // null: there is none
        flush();
        return std::move(file_);
    }
    void flush() {
        const std::vector<kv::CacheEvent> events = kv_.events().take();
        if (events.empty()) return;
        if (listener_) listener_(events, clock_.now_ns());
        if (file_) write(events);
    }
    void on_end(const StepReport&) override { flush(); }

  private:
    void begin() { // what was before is of those who are there already
        flush();
        kv_.events().record();
    }
    void write(std::span<const kv::CacheEvent> events) {
        file_->write(events, clock_.now_ns(), kv_.shape().block_size());
    }

    kv::KvCache& kv_;
    const Clock& clock_;
    Listener listener_;
    std::unique_ptr<KvEventFile> file_;
};

}  // namespace patchbay::engine
