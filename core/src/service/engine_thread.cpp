#include "service/engine_thread.hpp"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <future>
#include <optional>
#include <utility>

#include "base/call_watch.hpp"

namespace patchbay::service {

EngineThread::EngineThread(std::unique_ptr<engine::Engine> engine, EngineThreadOptions options)
    : options_(std::move(options)), engine_(std::move(engine)), thread_([this] { loop(); }) {}

EngineThread::~EngineThread() { stop(); }

Result<std::shared_ptr<Stream>> EngineThread::submit(engine::Request request, std::function<void()> on_ready) {
    auto stream =
        std::make_shared<Stream>(request.sampling.n, options_.max_queued_deltas, std::move(on_ready));
    {
        const std::lock_guard lock(mutex_);
        if (status_.state != ServiceState::kRunning)
            return fail(StatusCode::kUnavailable,
                        "the engine is " + std::string(name_of(status_.state)) +
                            (status_.reason.empty() ? "" : ": " + status_.reason) + ", and takes no requests");
        if (arrivals_.size() >= options_.max_inbox)
            return fail(StatusCode::kExhausted, std::to_string(arrivals_.size()) +
                                                    " requests wait for the step under way to end, expected at most " +
                                                    std::to_string(options_.max_inbox));
        arrivals_.push_back({std::move(request), stream});
    }
    wake_.notify_one();
    return stream;
}

void EngineThread::abort(const std::shared_ptr<Stream>& stream) {
    {
        const std::lock_guard lock(mutex_);
        if (status_.state == ServiceState::kStopped || status_.state == ServiceState::kFailed) return;
        tasks_.push_back([this, stream](engine::Engine& engine) {
            std::optional<engine::RequestId> id;
            {
                const std::lock_guard guard(stream->mutex_);
                id = stream->id_;
            }
            if (!id) return abort_waiting(stream); // or it was refused
            const auto at = streams_.find(*id); // which another request may have, of an engine that was replaced
            if (at != streams_.end() && at->second == stream) engine.abort(*id);
        });
        boundary_wanted_ = true;
    }
    wake_.notify_one();
}

// One that waits for the next engine. It was not given to any.
void EngineThread::abort_waiting(const std::shared_ptr<Stream>& stream) {
    {
        const std::lock_guard lock(mutex_);
        if (std::erase_if(arrivals_, [&](const Arrival& a) { return a.stream == stream; }) == 0) return;
    }
    for (uint32_t i = 0; i < stream->outputs_; ++i) {
        engine::RequestOutput last;
        last.index = i;
        last.finish = engine::FinishReason::kAbort;
        stream->push(last);
    }
    changed_.notify_all();
}

std::shared_ptr<host::Swap> EngineThread::swap(const engine::SwapRequest& request) {
    return swap_together({request}).front();
}

std::vector<std::shared_ptr<host::Swap>> EngineThread::swap_together(std::vector<engine::SwapRequest> requests) {
    for (engine::SwapRequest& r : requests)
        r.between_steps = [this](const std::function<void()>& f) { return call([&](engine::Engine&) { f(); }); };
    auto swaps = engine()->swap_together(requests);
    want_boundary();
    return swaps;
}

std::shared_ptr<host::Swap> EngineThread::refuse_swap(const host::Identity& to, const std::string& phase,
                                                      const std::string& why) {
    auto refused = engine()->refuse_swap(to, phase, why);
    want_boundary();
    return refused;
}

void EngineThread::want_boundary() {
    {
        const std::lock_guard lock(mutex_);
        boundary_wanted_ = true;
    }
    wake_.notify_one();
}

std::shared_ptr<engine::Engine> EngineThread::engine() const {
    const std::lock_guard lock(mutex_);
    return engine_;
}

Result<> EngineThread::replace(std::shared_ptr<engine::Engine> next,
                               const std::function<void(engine::Engine&, uint64_t step)>& first) {
    std::shared_ptr<engine::Engine> before; // destroyed here, without the lock
    std::unique_lock lock(mutex_);
    const auto ended = [&] {
        return status_.state == ServiceState::kStopped || status_.state == ServiceState::kFailed;
    };
    if (!ended()) {
        next_ = next;
        first_of_next_ = first;
        wake_.notify_one();
        changed_.wait(lock, [&] { return !next_ || ended(); });
    }
    before = std::move(replaced_);
    if (engine_ == next) return {};
    next_.reset();
    first_of_next_ = nullptr;
    return fail(StatusCode::kUnavailable, "the engine has stopped");
}

void EngineThread::take_over() {
    std::function<void(engine::Engine&, uint64_t)> first;
    uint64_t step = 0;
    {
        const std::lock_guard lock(mutex_);
        if (!next_ || engine_->has_unfinished() || !streams_.empty()) return;
        first = std::exchange(first_of_next_, nullptr);
        step = status_.last.step;
        replaced_ = std::exchange(engine_, next_);
        engine_->go_on_with_trace_of(*replaced_);
        boundary_wanted_ = true; // its first step has something to report
    }
    first(*engine_, step);
    {
        const std::lock_guard lock(mutex_);
        next_.reset();
    }
    changed_.notify_all();
}

ServiceStatus EngineThread::status() const {
    const std::lock_guard lock(mutex_);
    ServiceStatus now = status_;
    now.inbox = arrivals_.size();
    return now;
}

bool EngineThread::is_replacing() const {
    const std::lock_guard lock(mutex_);
    return next_ != nullptr;
}

bool EngineThread::call(const std::function<void(engine::Engine&)>& f) {
    auto done = std::make_shared<std::promise<bool>>();
    std::future<bool> called = done->get_future();
    {
        const std::lock_guard lock(mutex_);
        if (status_.state == ServiceState::kStopped || status_.state == ServiceState::kFailed) return false;
        tasks_.push_back([done, &f](engine::Engine& engine) {
            f(engine);
            done->set_value(true);
        });
    }
    done.reset(); // a task that is dropped breaks the promise
    wake_.notify_one();
    try {
        return called.get();
    } catch (const std::future_error&) {
        return false;
    }
}

void EngineThread::drain() {
    std::unique_lock lock(mutex_);
    if (status_.state == ServiceState::kRunning) status_.state = ServiceState::kDraining;
    wake_.notify_one();
    changed_.wait(lock, [&] {
        const bool ended = status_.state == ServiceState::kStopped || status_.state == ServiceState::kFailed;
        return ended || (arrivals_.empty() && status_.unfinished == 0);
    });
}

void EngineThread::stop() {
    const std::lock_guard one(stopping_);
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void EngineThread::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [&] { return status_.state == ServiceState::kStopped || status_.state == ServiceState::kFailed; });
}

void EngineThread::loop() {
    std::optional<CallWatch> watch;
    if (options_.max_hang_s > 0)
        watch.emplace([ns = uint64_t{options_.max_hang_s} * 1'000'000'000] { return ns; },
                      [hung = pthread_self()](const std::string& what) {
                          spdlog::critical("{}", what);
                          pthread_kill(hung, SIGABRT); // so that the message of the crash names the call
                      });
    while (take_inbox()) {
        step();
        take_over();
    }
    std::vector<engine::RequestId> unfinished;
    for (const auto& [id, stream] : streams_) unfinished.push_back(id);
    for (const engine::RequestId id : unfinished) engine_->abort(id); // its last delta says so
    end(fail(StatusCode::kUnavailable, "the engine was stopped"));
    {
        const std::lock_guard lock(mutex_);
        if (status_.state != ServiceState::kFailed) status_.state = ServiceState::kStopped;
        status_.unfinished = 0;
    }
    changed_.notify_all();
}

bool EngineThread::take_inbox() {
    std::vector<Arrival> arrivals;
    std::vector<Task> tasks;
    {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] {
            return stop_ || boundary_wanted_ || next_ || !arrivals_.empty() || !tasks_.empty() ||
                   engine_->has_unfinished();
        });
        if (stop_ || status_.state == ServiceState::kFailed) return false;
        if (!next_) arrivals.swap(arrivals_);
        tasks.swap(tasks_);
        pass_boundary_ = std::exchange(boundary_wanted_, false); // wanted later: at the turn that takes the task
        status_.unfinished += arrivals.size(); // so that drain() does not miss them
    }
    for (Arrival& arrival : arrivals) add(std::move(arrival));
    for (Task& task : tasks) task(*engine_);
    return true;
}

void EngineThread::add(Arrival arrival) {
    engine::Request& request = arrival.request;
    request.arrival_ns = engine_->clock().now_ns();
    request.on_output = [this, stream = arrival.stream](const engine::RequestOutput& delta) {
        if (options_.on_output) options_.on_output(delta);
        if (stream->push(delta)) streams_.erase(delta.id);
    };
    std::optional<engine::Request> copy;
    if (options_.on_request) copy = request;
    const auto id = engine_->add_request(std::move(request));
    if (!id) return arrival.stream->fail(id.failure());
    streams_.emplace(*id, arrival.stream);
    if (copy) options_.on_request(*id, *copy);
    arrival.stream->accept(*id);
}

void EngineThread::step() {
    Result<engine::StepReport> report = engine::StepReport{};
    const bool works = pass_boundary_ || engine_->has_unfinished();
    if (works) report = engine_->step();
    if (works && report && options_.on_step) options_.on_step(*report);
    {
        const std::lock_guard lock(mutex_);
        status_.unfinished = streams_.size();
        if (works && report) status_.last = *report, status_.steps += 1;
        if (!report) status_.state = ServiceState::kFailed, status_.reason = report.error();
    }
    if (!report) end(fail(StatusCode::kInternal, report.error()));
    changed_.notify_all();
}

void EngineThread::end(const Failure& why) {
    std::vector<Arrival> arrivals;
    std::vector<Task> tasks; // dropped
    {
        const std::lock_guard lock(mutex_);
        arrivals.swap(arrivals_);
        tasks.swap(tasks_);
    }
    for (Arrival& arrival : arrivals) arrival.stream->fail(why);
    for (const auto& [id, stream] : std::exchange(streams_, {})) stream->fail(why);
}

}  // namespace patchbay::service
