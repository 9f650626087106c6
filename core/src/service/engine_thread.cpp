#include "service/engine_thread.hpp"

#include <future>
#include <utility>

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
        tasks_.push_back([stream](engine::Engine& engine) {
            if (const std::lock_guard guard(stream->mutex_); !stream->id_) return; // refused
            engine.abort(*stream->id_);
        });
        boundary_wanted_ = true;
    }
    wake_.notify_one();
}

std::shared_ptr<host::Swap> EngineThread::swap(const engine::SwapRequest& request) {
    return swap_together({request}).front();
}

std::vector<std::shared_ptr<host::Swap>> EngineThread::swap_together(std::vector<engine::SwapRequest> requests) {
    for (engine::SwapRequest& r : requests)
        r.between_steps = [this](const std::function<void()>& f) { return call([&](engine::Engine&) { f(); }); };
    auto swaps = engine_->swap_together(requests);
    {
        const std::lock_guard lock(mutex_);
        boundary_wanted_ = true;
    }
    wake_.notify_one();
    return swaps;
}

ServiceStatus EngineThread::status() const {
    const std::lock_guard lock(mutex_);
    ServiceStatus now = status_;
    now.inbox = arrivals_.size();
    return now;
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
    while (take_inbox()) step();
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
            return stop_ || boundary_wanted_ || !arrivals_.empty() || !tasks_.empty() || engine_->has_unfinished();
        });
        if (stop_ || status_.state == ServiceState::kFailed) return false;
        arrivals.swap(arrivals_);
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
