#include "service/engine_thread.hpp"

#include <future>
#include <utility>

#include "engine/engine_control.hpp"
#include "engine/trace/step_files.hpp"

namespace patchbay::service {

EngineThread::EngineThread(std::unique_ptr<engine::Engine> engine, EngineThreadOptions options)
    : options_(std::move(options)), state_(std::move(engine), options_.max_inbox), loop_(options_, state_),
      thread_([this] { loop_.run(); }) {}

EngineThread::~EngineThread() { stop(); }

Result<std::shared_ptr<Stream>> EngineThread::submit(engine::Request request, std::function<void()> on_ready) {
    const uint32_t outputs = request.pooling ? 1 : request.sampling.n;
    auto stream = std::make_shared<Stream>(outputs, options_.max_queued_deltas, std::move(on_ready));
    {
        const std::lock_guard lock(state_.mutex);
        const ServiceStatus& status = state_.status;
        if (status.state != ServiceState::kRunning)
            return fail(StatusCode::kUnavailable,
                        "the engine is " + std::string(name_of(status.state)) +
                            (status.reason.empty() ? "" : ": " + status.reason) + ", and takes no requests");
        request.arrival_ns = state_.engines.current()->clock().now_ns(); // with the lock: in the order of the inbox
        if (request.deadline_ns > 0) request.deadline_ns += request.arrival_ns;
        PB_CHECK(state_.inbox.add({std::move(request), stream}));
    }
    state_.wake.notify_one();
    return stream;
}

void EngineThread::abort(const std::shared_ptr<Stream>& stream) {
    {
        const std::lock_guard lock(state_.mutex);
        if (state_.status.has_ended()) return;
        state_.inbox.add_task([this, stream] { loop_.abort(stream); });
        state_.inbox.want_boundary();
    }
    state_.wake.notify_one();
}

std::shared_ptr<host::Swap> EngineThread::swap(const engine::SwapRequest& request) {
    return swap_together({request}).front();
}

std::vector<std::shared_ptr<host::Swap>> EngineThread::swap_together(std::vector<engine::SwapRequest> requests) {
    for (engine::SwapRequest& r : requests)
        r.between_steps = [this](const std::function<void()>& f) { return call([&](engine::Engine&) { f(); }); };
    auto swaps = engine()->control().swap_together(requests);
    want_boundary();
    return swaps;
}

std::shared_ptr<host::Swap> EngineThread::refuse_swap(const host::Identity& to, const std::string& phase,
                                                      const Failure& why) {
    auto refused = engine()->control().swaps().refuse(to, phase, why);
    want_boundary();
    return refused;
}

bool EngineThread::needs_new_engine(const engine::SwapRequest& request) {
    return engine()->control().swaps().needs_new_engine(request);
}

void EngineThread::want_boundary() {
    {
        const std::lock_guard lock(state_.mutex);
        state_.inbox.want_boundary();
    }
    state_.wake.notify_one();
}

// All that it steps was given to it here, by the constructor or by replace().
std::shared_ptr<engine::Engine> EngineThread::engine() const {
    const std::lock_guard lock(state_.mutex);
    return std::static_pointer_cast<engine::Engine>(state_.engines.current());
}

Result<> EngineThread::replace(std::shared_ptr<engine::Engine> next, const First& first) {
    const std::shared_ptr<engine::Engine> before = engine(); // destroyed here, without the lock
    const auto take_over = [&](uint64_t step) { // on the loop's thread, for which this one waits
        next->files().go_on_with(before->files());
        next->control().end_swaps_of(before->control());
        first(*next, *before, step);
    };
    std::unique_lock lock(state_.mutex);
    EngineReplacement& engines = state_.engines;
    if (!state_.status.has_ended()) {
        engines.begin(next, take_over);
        state_.inbox.hold_arrivals(); // those that are there are the present engine's
        state_.wake.notify_one();
        state_.changed.wait(lock, [&] { return !engines.is_pending() || state_.status.has_ended(); });
    }
    engines.release_replaced();
    if (engines.current() == next) return {};
    engines.cancel();
    return fail(StatusCode::kUnavailable, "the engine has stopped");
}

ServiceStatus EngineThread::status() const {
    const std::lock_guard lock(state_.mutex);
    ServiceStatus now = state_.status;
    now.inbox = state_.inbox.arrivals();
    return now;
}

bool EngineThread::is_replacing() const {
    const std::lock_guard lock(state_.mutex);
    return state_.engines.is_pending();
}

bool EngineThread::call(const std::function<void(engine::Engine&)>& f) {
    auto done = std::make_shared<std::promise<bool>>();
    std::future<bool> called = done->get_future();
    {
        const std::lock_guard lock(state_.mutex);
        if (state_.status.has_ended()) return false;
        state_.inbox.add_task([this, done, &f] { // by which time it may be another engine
            f(*engine());
            done->set_value(true);
        });
    }
    done.reset(); // a task that is dropped breaks the promise
    state_.wake.notify_one();
    try {
        return called.get();
    } catch (const std::future_error&) {
        return false;
    }
}

void EngineThread::drain() {
    std::unique_lock lock(state_.mutex);
    ServiceStatus& status = state_.status;
    if (status.state == ServiceState::kRunning) status.state = ServiceState::kDraining;
    state_.wake.notify_one();
    state_.changed.wait(lock, [&] {
        return status.has_ended() || (state_.inbox.arrivals() == 0 && status.unfinished == 0);
    });
}

void EngineThread::stop() {
    const std::lock_guard one(stopping_);
    {
        const std::lock_guard lock(state_.mutex);
        state_.inbox.stop();
    }
    state_.wake.notify_one();
    if (thread_.joinable()) thread_.join();
}

void EngineThread::wait() {
    std::unique_lock lock(state_.mutex);
    state_.changed.wait(lock, [&] { return state_.status.has_ended(); });
}

}  // namespace patchbay::service
