#include "cpu.hpp"

#include <cstdio>
#include <cstdlib>

#include "kernels/host_memory.hpp"
#include "measure.hpp"

namespace patchbay {
namespace {

kernels::Isa choose_isa(const Context& context) {
    const kernels::IsaChoice choice =
        kernels::choose_isa(context.get<std::string>("isa"), std::getenv(kernels::kIsaVariable));
    switch (choice.verdict) {
        case kernels::IsaChoice::Verdict::Unknown: throw Error(PB_INVALID, choice.reason);
        case kernels::IsaChoice::Verdict::Unavailable: throw Error(PB_UNAVAILABLE, choice.reason);
        case kernels::IsaChoice::Verdict::Ok: break;
    }
    return choice.isa;
}

}  // namespace

CpuDevice::CpuDevice(const Context& context)
    : clock_(context.host()),
      machine_(choose_isa(context), context.host()),
      weights_(machine_.kernels()),
      connection_(context.host()),
      context_(machine_.kernels(), connection_, *this),
      ops_(cpu_ops(context_)) {}

pb_device_info CpuDevice::info() const {
    pb_device_info out = patchbay::sized<pb_device_info>();
    out.computes = 1;
    out.activation_dtype = PB_F32;
    out.host_memory = 1;
    const kernels::HostMemory memory = kernels::host_memory();
    out.memory_total = memory.total;
    out.memory_free = memory.available;
    const char* isa = kernels::isa_name(machine_.kernels().isa);
    std::snprintf(out.name, sizeof out.name, "%s (%s)", kernels::cpu_brand().c_str(), isa);
    std::snprintf(out.isa, sizeof out.isa, "%s", isa);
    return out;
}

std::vector<pb_limit> CpuDevice::measure() const { return measured_limits(machine_.kernels(), clock_); }

void CpuDevice::connect(const pb_group& group) {
    connection_.connect(group);
    add_collectives(ops_);
}

}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::device<patchbay::CpuDevice>(
    {.name = "cpu", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "f32 activations; f32, bf16, 8-bit or 4-bit weights; on the host's cores"}))
