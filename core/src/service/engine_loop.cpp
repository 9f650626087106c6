#include "service/engine_loop.hpp"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include "base/call_watch.hpp"
#include "base/crash_report.hpp"
#include "engine/loop/step_failure.hpp"

namespace patchbay::service {
namespace {

constexpr std::chrono::seconds kIdle{1}; // from look to look at an engine that has nothing to do

}  // namespace

EngineLoop::EngineLoop(const EngineThreadOptions& options, LoopState& state)
    : options_(options), state_(state), streams_(options) {}

void EngineLoop::run() {
    const SignalStack stack; // a plugin may recurse without end
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
    streams_.abort_all(engine());
    {
        const std::lock_guard lock(state_.mutex);
        if (state_.status.state != ServiceState::kFailed) state_.status.state = ServiceState::kStopped;
        state_.status.unfinished = 0;
    } // nothing more comes into the inbox
    fail_all(fail(StatusCode::kUnavailable, "the engine was stopped"));
    state_.changed.notify_all();
}

bool EngineLoop::take_inbox() {
    Inbox::Contents taken;
    {
        std::unique_lock lock(state_.mutex);
        state_.wake.wait_for(lock, kIdle, [&] {
            return !state_.inbox.empty() || state_.engines.is_pending() || engine().has_unfinished();
        });
        if (state_.inbox.stopping() || state_.status.state == ServiceState::kFailed) return false;
        taken = state_.engines.is_pending() ? state_.inbox.take_but_held() : state_.inbox.take();
        state_.status.unfinished += taken.arrivals.size(); // so that drain() does not miss them
    }
    pass_boundary_ = taken.wants_boundary; // wanted later: at the turn that takes the task
    for (Inbox::Arrival& arrival : taken.arrivals) streams_.add(engine(), std::move(arrival));
    for (Inbox::Task& task : taken.tasks) task();
    return true;
}

void EngineLoop::step() {
    Result<engine::StepReport> report = engine::StepReport{};
    const bool works = pass_boundary_ || engine().has_unfinished();
    if (works) report = engine().step();
    else if (const auto possible = engine().check(); !possible) report = possible.failure();
    {
        const std::lock_guard lock(state_.mutex);
        ServiceStatus& status = state_.status;
        status.unfinished = streams_.size();
        if (works && report) status.last = *report, status.steps += 1;
        if (!report) status.state = ServiceState::kFailed, status.reason = report.error();
    }
    if (!report) fail_all(engine::for_requests(report.failure()));
    state_.changed.notify_all();
}

void EngineLoop::take_over() {
    EngineReplacement::First first;
    uint64_t step = 0;
    {
        const std::lock_guard lock(state_.mutex);
        if (state_.status.has_ended() || !state_.engines.is_pending()) return;
        if (state_.inbox.has_unheld() || engine().has_unfinished() || streams_.size() > 0) return;
        step = state_.status.last.step;
        first = state_.engines.switch_over();
        state_.inbox.want_boundary(); // its first step has something to report
    }
    first(step);
    {
        const std::lock_guard lock(state_.mutex);
        state_.engines.finish();
    }
    state_.changed.notify_all();
}

void EngineLoop::abort(const std::shared_ptr<Stream>& stream) {
    if (stream->id()) return streams_.abort(engine(), stream);
    {
        const std::lock_guard lock(state_.mutex);
        if (!state_.inbox.remove(*stream)) return; // the engine has refused it
    }
    stream->abort(); // it waited for the next engine, and was not given to any
    state_.changed.notify_all();
}

void EngineLoop::fail_all(const Failure& why) {
    Inbox::Contents dropped;
    {
        const std::lock_guard lock(state_.mutex);
        dropped = state_.inbox.take();
    }
    for (const Inbox::Arrival& arrival : dropped.arrivals) arrival.stream->fail(why);
    streams_.fail_all(why);
}

}  // namespace patchbay::service
