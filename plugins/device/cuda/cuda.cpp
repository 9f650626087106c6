#include "cuda.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "measure.hpp"

namespace patchbay {

CudaDevice::CudaDevice(const Context& context)
    : activation_dtype_(context.get<std::string>("activation_dtype") == "f32" ? PB_F32 : PB_BF16),
      batch_invariant_(context.get<bool>("batch_invariant")),
      clock_(context.host()),
      gpu_(context.get<int>("index"), context.get<bool>("check_each_op")),
      staging_(gpu_.stream()),
      workspace_(gpu_, static_cast<uint64_t>(context.get<int>("workspace_mib")) << 20),
      products_(gpu_.stream(), workspace_.data(), workspace_.bytes(),
                batch_invariant_ ? Products::Algorithms::kOneForAllSizes : Products::Algorithms::kBest),
      connection_(gpu_),
      steps_(gpu_, connection_),
      graphs_(gpu_, steps_),
      experts_(gpu_, staging_),
      weights_(gpu_, staging_, experts_, activation_dtype_),
      context_({gpu_, steps_, products_, experts_, connection_}, activation_dtype_, batch_invariant_),
      ops_(cuda_ops(context_)) {
    gpu_.wait(); // for the first work, so that its fault is not one of a step
}

CudaDevice::~CudaDevice() {
    gpu_.use_if_it_goes();
    cudaStreamSynchronize(gpu_.stream());
    connection_.close();
}

pb_device_info CudaDevice::info() const {
    gpu_.use();
    pb_device_info out = patchbay::sized<pb_device_info>();
    out.computes = 1;
    out.activation_dtype = activation_dtype_;
    out.batch_dependent = batch_invariant_ ? 0 : 1;
    const Gpu::Memory memory = gpu_.memory();
    out.memory_total = memory.total;
    out.memory_free = memory.free;
    const cudaDeviceProp& properties = gpu_.properties();
    std::snprintf(out.name, sizeof out.name, "%.95s", properties.name);
    std::snprintf(out.isa, sizeof out.isa, "sm_%d%d", properties.major, properties.minor);
    std::snprintf(out.visible_by, sizeof out.visible_by, "CUDA_VISIBLE_DEVICES");
    return out;
}

std::vector<pb_limit> CudaDevice::measure() {
    gpu_.use();
    return measured_limits(gpu_, staging_, products_, clock_);
}

// ---- memory ----

void* CudaDevice::alloc(uint64_t bytes) {
    gpu_.use();
    void* const memory = gpu_.take(bytes);
    check_cuda(cudaMemsetAsync(memory, 0, bytes, gpu_.stream()), "zeroing memory");
    check_cuda(cudaStreamSynchronize(gpu_.stream()), "allocating memory");
    return memory;
}

void CudaDevice::free(void* memory) {
    if (memory) gpu_.give_back(memory);
}

void CudaDevice::to_device(void* to, const void* from, uint64_t bytes) {
    gpu_.use();
    staging_.upload(to, from, bytes);
}

void CudaDevice::to_host(void* to, const void* from, uint64_t bytes) {
    gpu_.use();
    staging_.download(to, from, bytes);
}

void CudaDevice::to_host_async(void* to, const void* from, uint64_t bytes) {
    gpu_.use();
    steps_.copy_later(to, from, bytes);
}

void CudaDevice::copy(void* to, const void* from, uint64_t bytes, cudaMemcpyKind kind, const char* what) {
    gpu_.use();
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, gpu_.stream()), what);
}

void CudaDevice::copy_page(void* to, const void* from, uint64_t bytes) {
    copy(to, from, bytes, cudaMemcpyDeviceToDevice, "a copy within the device");
}

void CudaDevice::page_to_host(void* to, const void* from, uint64_t bytes) {
    copy(to, from, bytes, cudaMemcpyDeviceToHost, "a page to the host");
}

void CudaDevice::page_to_device(void* to, const void* from, uint64_t bytes) {
    copy(to, from, bytes, cudaMemcpyHostToDevice, "a page from the host");
}

void* CudaDevice::host_alloc(uint64_t bytes) {
    gpu_.use();
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, std::max<uint64_t>(bytes, 1), cudaHostAllocDefault), "pinned memory for pages");
    return memory;
}

void CudaDevice::host_free(void* memory) noexcept {
    gpu_.use_if_it_goes();
    cudaFreeHost(memory);
}

// ---- weights, steps, ranks ----

pb_weight* CudaDevice::prepare(const pb_weight_source& source) {
    gpu_.use();
    return weights_.prepare(source);
}

void CudaDevice::begin_step() {
    gpu_.use();
    steps_.begin();
}

void CudaDevice::end_step() {
    gpu_.use();
    steps_.end();
}

void CudaDevice::submit_step() {
    gpu_.use();
    steps_.submit();
}

void CudaDevice::wait_step() {
    gpu_.use();
    steps_.wait();
}

void CudaDevice::graph_begin() {
    gpu_.use();
    graphs_.begin();
}

void CudaDevice::connect(const pb_group& group) {
    gpu_.use();
    connection_.connect(group);
    add_collectives(ops_);
}

}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::device<patchbay::CudaDevice>(
    {.name = "cuda", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "one NVIDIA GPU from sm_80 on: bf16 or f32 activations, f32, bf16, 8-bit or 4-bit weights"}))
