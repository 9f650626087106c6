#include "runner/device_steps.hpp"

#include <algorithm>

#include "runner/timed.hpp"

namespace patchbay::runner {

void DeviceSteps::pass_host_time() {
    const auto* const simulation = device_.plugin.extension<pb_device_simulation>();
    if (simulation && simulation->host_ns)
        clock_.wait_until_ns(clock_.now_ns() + device_.plugin.call<&pb_device_simulation::host_ns>());
}

Result<> DeviceSteps::begin(CallTimes& times) {
    begin_ns_ = clock_.now_ns();
    const pb_status status = device_.plugin.call<&pb_device::begin_step>();
    times.device_begin += clock_.now_ns() - begin_ns_;
    return device_.plugin.component->check(status, "begin_step");
}

// One step after the other: it begins when those before it are done.
uint64_t DeviceSteps::busy_until() {
    busy_until_ns_ =
        std::max(begin_ns_, busy_until_ns_) + device_.plugin.call<&pb_device_simulation::charged_ns>();
    return busy_until_ns_;
}

Result<> DeviceSteps::end(CallTimes& times, uint64_t& ns) {
    const Result<> ended = device_.plugin.component->check(
        timed(clock_, times.device_end, [&] { return device_.plugin.call<&pb_device::end_step>(); }), "end_step");
    if (ended && !device_.computes()) timed(clock_, ns, [&] { clock_.wait_until_ns(busy_until()); });
    return ended;
}

bool DeviceSteps::can_submit() const {
    const auto* const async = device_.plugin.extension<pb_device_async>();
    if (!async) return false;
    return !device_.computes() ||
           (device_.has_own_memory() && async->to_host_async && device_.ops.fill_placeholders);
}

Result<> DeviceSteps::submit(bool samples) {
    PB_CHECK(device_.plugin.checked<&pb_device_async::submit_step>());
    in_flight_.push_back({samples, device_.computes() ? 0 : busy_until()});
    return {};
}

Result<bool> DeviceSteps::wait() {
    if (in_flight_.empty()) return fail(StatusCode::kInternal, "no step is in flight");
    const InFlight oldest = in_flight_.front();
    if (!device_.computes()) clock_.wait_until_ns(oldest.ready_ns);
    in_flight_.pop_front();
    PB_CHECK(device_.plugin.checked<&pb_device_async::wait_step>());
    return oldest.samples;
}

void DeviceSteps::abandon() {
    for (; !in_flight_.empty(); in_flight_.pop_front()) (void)device_.plugin.call<&pb_device_async::wait_step>();
}

}  // namespace patchbay::runner
