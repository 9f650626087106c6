#include "cuda.hpp"

#include <cstdio>
#include <string>

#include "measure.hpp"

namespace patchbay {

CudaDevice::CudaDevice(const Context& context)
    : SharedParts(context.get<int>("index"), context.get<bool>("check_each_op")),
      DeviceMemory(gpu, staging),
      Steps(gpu, connection),
      Graphs(gpu, *this),
      activation_dtype_(context.get<std::string>("activation_dtype") == "f32" ? PB_F32 : PB_BF16),
      batch_invariant_(context.get<bool>("batch_invariant")),
      clock_(context.host()),
      workspace_(gpu, static_cast<uint64_t>(context.get<int>("workspace_mib")) << 20),
      products_(gpu.stream(), workspace_.data(), workspace_.bytes(),
                batch_invariant_ ? Products::Algorithms::kOneForAllSizes : Products::Algorithms::kBest),
      experts_(gpu, staging),
      weights_(gpu, staging, experts_, activation_dtype_),
      context_({gpu, *this, products_, experts_, connection}, activation_dtype_, batch_invariant_),
      ops_(cuda_ops(context_)) {
    gpu.wait(); // for the first work, so that its fault is not one of a step
}

CudaDevice::~CudaDevice() {
    gpu.use_if_it_goes();
    cudaStreamSynchronize(gpu.stream());
    connection.close();
}

pb_device_info CudaDevice::info() const {
    gpu.use();
    pb_device_info out = patchbay::sized<pb_device_info>();
    out.computes = 1;
    out.activation_dtype = activation_dtype_;
    out.batch_dependent = batch_invariant_ ? 0 : 1;
    const Gpu::Memory memory = gpu.memory();
    out.memory_total = memory.total;
    out.memory_free = memory.free;
    const cudaDeviceProp& properties = gpu.properties();
    std::snprintf(out.name, sizeof out.name, "%.95s", properties.name);
    std::snprintf(out.isa, sizeof out.isa, "sm_%d%d", properties.major, properties.minor);
    std::snprintf(out.visible_by, sizeof out.visible_by, "CUDA_VISIBLE_DEVICES");
    return out;
}

std::vector<pb_limit> CudaDevice::measure() {
    gpu.use();
    return measured_limits(gpu, staging, products_, clock_);
}

pb_weight* CudaDevice::prepare(const pb_weight_source& source) {
    gpu.use();
    return weights_.prepare(source);
}

void CudaDevice::connect(const pb_group& group) {
    gpu.use();
    connection.connect(group);
    add_collectives(ops_);
}

}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::device<patchbay::CudaDevice>(
    {.name = "cuda", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "one NVIDIA GPU from sm_80 on: bf16 or f32 activations, f32, bf16, 8-bit or 4-bit weights"}))
