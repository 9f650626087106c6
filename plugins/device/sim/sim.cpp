#include "sim.hpp"

#include <cstdio>

namespace patchbay {

SimDevice::SimDevice(const Context& context)
    : StepTime(hardware_of(context)),
      CountedMemory(hardware().name, hardware().memory_bytes),
      PageCopies(static_cast<StepTime&>(*this)),
      Weights(hardware(), *this),
      Graphs(*this, *this),
      context_(*this, *this, context.get<std::string>("activation_dtype") == "f32" ? PB_F32 : PB_BF16),
      ops_(sim_ops(context_)) {}

pb_device_info SimDevice::info() const {
    pb_device_info out = patchbay::sized<pb_device_info>();
    out.activation_dtype = context_.activation_dtype();
    out.memory_total = total_bytes();
    out.memory_free = free_bytes();
    std::snprintf(out.name, sizeof out.name, "simulated %s", hardware().name.c_str());
    std::snprintf(out.isa, sizeof out.isa, "sim");
    return out;
}

void SimDevice::begin_step() {
    StepFault::begin_step();
    restart();
}

void SimDevice::connect(const pb_group& group) {
    if (!(hardware().beta_per_ns > 0))
        throw Error(PB_UNSUPPORTED, "the simulated " + hardware().name + " is one rank, not one of " +
                                        std::to_string(group.size) + " (say its collective_bandwidth)");
    context_.set_ranks(group.size);
    add_collectives(ops_);
}

}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::device<patchbay::SimDevice>(
    {.name = "sim", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "computes nothing: charges each op the time that the described hardware would take"}))
