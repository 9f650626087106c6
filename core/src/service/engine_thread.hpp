// The thread-safe door to an engine: it owns the thread on which the engine steps. Used by what serves requests that
// come from other threads, as a server does.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "service/engine_loop.hpp"
#include "service/engine_thread_options.hpp"
#include "service/live_engine.hpp"
#include "service/loop_state.hpp"
#include "service/stream.hpp"

namespace patchbay::service {

// All functions: any thread, but not from an observer, on_ready or on_output (they run on the loop's thread).
class EngineThread final : public LiveEngine {
  public:
    EngineThread(std::unique_ptr<engine::Engine>, EngineThreadOptions);
    ~EngineThread() override; // stop()
    EngineThread(const EngineThread&) = delete;
    EngineThread& operator=(const EngineThread&) = delete;

    // The request arrives now, though a step may be under way: its arrival_ns and on_output are set here, and its
    // deadline_ns, where it has one, counts from then. Returns at once; whether the engine accepts it is known at the
    // next step boundary (Stream::accepted).
    // Refused here: a full inbox (exhausted), or a service that is draining, stopped or failed (unavailable).
    Result<std::shared_ptr<Stream>> submit(engine::Request, std::function<void()> on_ready = {});
    // The stream ends with finish reason abort; nothing where it has ended.
    void abort(const std::shared_ptr<Stream>&);
    std::shared_ptr<host::Swap> swap(const engine::SwapRequest&); // swap_together() of one
    std::vector<std::shared_ptr<host::Swap>> swap_together(std::vector<engine::SwapRequest>) override;
    std::shared_ptr<host::Swap> refuse_swap(const host::Identity& to, const std::string& phase, const Failure& why);
    bool needs_new_engine(const engine::SwapRequest&); // as swap()
    // Another engine, on the same clock, takes the place of this one. Requests that it has run to their end; those that
    // come meanwhile wait, max_inbox at most, and go to the other one, which goes on with this one's files and reports
    // the end of its swaps. `first`: called on the loop's thread when that has taken over, before its first step;
    // `step`: the last one of the engine that it replaces. Returns after it; fails if the loop ends before. One call at
    // a time.
    using First = std::function<void(engine::Engine& next, engine::Engine& replaced, uint64_t step)>;
    Result<> replace(std::shared_ptr<engine::Engine> next, const First& first);
    bool is_replacing() const; // a call of replace() waits for the requests that this engine has
    ServiceStatus status() const override;
    bool call(const std::function<void(engine::Engine&)>& f) override;
    // As Engine::prepare: ahead of the request, beside the steps.
    Result<> prepare(engine::Request& r) { return engine()->prepare(r); }
    // Takes no more requests and returns when all that it has are finished.
    void drain();
    // Aborts what is unfinished and ends the loop. Streams may be read on.
    void stop();
    // Returns when the loop has ended: it was stopped, or the engine has failed.
    void wait();

  private:
    std::shared_ptr<engine::Engine> engine() const; // the present one
    void want_boundary(); // so that the next turn of the loop passes one

    const EngineThreadOptions options_;
    mutable LoopState state_;
    EngineLoop loop_;
    std::mutex stopping_; // one stop() at a time
    std::thread thread_;
};

}  // namespace patchbay::service
