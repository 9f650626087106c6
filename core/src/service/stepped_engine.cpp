#include "service/stepped_engine.hpp"

#include <future>
#include <utility>

#include "engine/engine_control.hpp"

namespace patchbay::service {

void SteppedEngine::between_steps() {
    std::vector<std::function<void(engine::Engine&)>> calls;
    {
        const std::lock_guard lock(mutex_);
        calls.swap(calls_);
    }
    for (const auto& call : calls) call(engine_);
}

void SteppedEngine::on_end(const engine::StepReport& report) {
    const std::lock_guard lock(mutex_);
    status_.last = report;
    status_.steps += 1;
    status_.unfinished = report.queues.running_requests + report.queues.waiting_requests;
}

void SteppedEngine::end() {
    engine_.stop_observing(*this);
    std::vector<std::function<void(engine::Engine&)>> dropped;
    const std::lock_guard lock(mutex_);
    status_.state = ServiceState::kStopped;
    dropped.swap(calls_);
}

ServiceStatus SteppedEngine::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

bool SteppedEngine::call(const std::function<void(engine::Engine&)>& f) {
    auto done = std::make_shared<std::promise<bool>>();
    std::future<bool> called = done->get_future();
    {
        const std::lock_guard lock(mutex_);
        if (status_.state == ServiceState::kStopped) return false;
        calls_.push_back([done, &f](engine::Engine& engine) {
            f(engine);
            done->set_value(true);
        });
    }
    done.reset(); // a call that is dropped breaks the promise
    try {
        return called.get();
    } catch (const std::future_error&) {
        return false;
    }
}

std::vector<std::shared_ptr<host::Swap>> SteppedEngine::swap_together(std::vector<engine::SwapRequest> requests) {
    for (engine::SwapRequest& r : requests)
        r.between_steps = [this](const std::function<void()>& f) { return call([&](engine::Engine&) { f(); }); };
    return engine_.control().swap_together(requests);
}

}  // namespace patchbay::service
