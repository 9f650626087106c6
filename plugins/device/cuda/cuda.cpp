#include "cuda.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace patchbay {
namespace {

constexpr int kLeastMajor = 8; // sm_80: bf16 tensor cores and asynchronous copies

const char* text_of(kernels::cuda::KernelFault fault) {
    using kernels::cuda::KernelFault;
    switch (fault) {
        case KernelFault::kNone: return "";
        case KernelFault::kEmbeddingId: return "embedding: an id is outside the table";
        case KernelFault::kGatherRow: return "gather_rows: a row is outside x";
        case KernelFault::kExpertId: return "expert_linear: an id is not that of an expert";
        case KernelFault::kTakenToken: return "fill_placeholders: a token is not among those that were sampled";
    }
    return "a kernel reports an unknown fault";
}

[[noreturn]] void unavailable(const std::string& why) { throw Error(PB_UNAVAILABLE, why); }

}  // namespace

CudaDevice::CudaDevice(const Context& context)
    : index_(context.get<int>("index")),
      activation_dtype_(context.get<std::string>("activation_dtype") == "f32" ? PB_F32 : PB_BF16),
      batch_invariant_(context.get<bool>("batch_invariant")),
      check_each_op_(context.get<bool>("check_each_op")),
      clock_(context.host()),
      ops_(cuda_ops(*this)) {
    int count = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess || count == 0) {
        cudaGetLastError();
        unavailable(std::string("no NVIDIA driver/GPU: ") +
                    (code == cudaSuccess ? "no device is visible" : cudaGetErrorString(code)));
    }
    if (index_ >= count)
        throw Error(PB_INVALID, "index " + std::to_string(index_) + ": " + std::to_string(count) + " GPUs are visible");
    use();
    check_cuda(cudaGetDeviceProperties(&properties_, index_), "cudaGetDeviceProperties");
    if (properties_.major < kLeastMajor)
        unavailable(std::string(properties_.name) + " is sm_" + std::to_string(properties_.major) +
                    std::to_string(properties_.minor) + ", expected sm_80 or later");
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    check_cuda(cudaStreamCreateWithFlags(&unrecorded_, cudaStreamNonBlocking), "a stream");
    cudaMemPool_t pool = nullptr; // what is freed stays with this process: steps take and give back alike
    check_cuda(cudaDeviceGetDefaultMemPool(&pool, index_), "the memory pool");
    uint64_t keep = UINT64_MAX;
    check_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "the memory pool");
    kernel_fault_ = static_cast<int32_t*>(take(sizeof *kernel_fault_));
    check_cuda(cudaMemsetAsync(kernel_fault_, 0, sizeof *kernel_fault_, stream_), "cudaMemsetAsync");
    staging_ = std::make_unique<Staging>(stream_);
    // One kernel, to see that this build has code for this GPU.
    auto* const probe = static_cast<uint8_t*>(take(64));
    kernels::cuda::widen(stream_, reinterpret_cast<float*>(probe), reinterpret_cast<const uint16_t*>(probe + 32), 1);
    if (const cudaError_t code = cudaGetLastError(); code != cudaSuccess)
        unavailable("kernels do not run on " + std::string(properties_.name) + " (sm_" +
                    std::to_string(properties_.major) + std::to_string(properties_.minor) +
                    "): " + cudaGetErrorString(code));
    check_cuda(cudaFreeAsync(probe, stream_), "cudaFreeAsync");
    const uint64_t workspace_bytes = static_cast<uint64_t>(context.get<int>("workspace_mib")) << 20;
    workspace_ = take(workspace_bytes);
    products_ = std::make_unique<Products>(
        stream_, workspace_, workspace_bytes,
        batch_invariant_ ? Products::Algorithms::kOneForAllSizes : Products::Algorithms::kBest);
    check_cuda(cudaStreamSynchronize(stream_), "the first work on the GPU");
}

// Memory of the stream goes with the process's context, if not before.
CudaDevice::~CudaDevice() {
    cudaSetDevice(index_);
    if (stream_) cudaStreamSynchronize(stream_);
    ranks_.reset();
    products_.reset();
    staging_.reset();
    if (workspace_) cudaFreeAsync(workspace_, stream_);
    for (const auto& [memory, bytes] : scratch_) cudaFreeAsync(memory, stream_);
    for (const auto& [experts, memory] : expert_tables_) cudaFreeAsync(memory, stream_);
    for (const Submitted& step : submitted_) {
        cudaEventDestroy(step.done);
        for (const Later& copy : step.later) cudaFreeHost(copy.pinned.memory);
    }
    for (const Later& copy : later_) cudaFreeHost(copy.pinned.memory);
    for (const Pinned& pinned : pinned_) cudaFreeHost(pinned.memory);
    if (kernel_fault_) cudaFreeAsync(kernel_fault_, stream_);
    for (const cudaStream_t stream : {unrecorded_, stream_})
        if (stream) cudaStreamDestroy(stream);
}

void CudaDevice::use() const { check_cuda(cudaSetDevice(index_), "cudaSetDevice"); }

pb_device_info CudaDevice::info() const {
    use();
    pb_device_info out = patchbay::sized<pb_device_info>();
    out.computes = 1;
    out.activation_dtype = activation_dtype_;
    out.batch_dependent = batch_invariant_ ? 0 : 1;
    size_t free_bytes = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
    cudaMemPool_t pool = nullptr;
    uint64_t reserved = 0, used = 0; // what the pool keeps is free to this process
    check_cuda(cudaDeviceGetDefaultMemPool(&pool, index_), "the memory pool");
    check_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), "the memory pool");
    check_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), "the memory pool");
    out.memory_total = total;
    out.memory_free = std::min<uint64_t>(total, free_bytes + (reserved > used ? reserved - used : 0));
    std::snprintf(out.name, sizeof out.name, "%.95s", properties_.name);
    std::snprintf(out.isa, sizeof out.isa, "sm_%d%d", properties_.major, properties_.minor);
    std::snprintf(out.visible_by, sizeof out.visible_by, "CUDA_VISIBLE_DEVICES");
    return out;
}

void CudaDevice::connect(const pb_group& group) {
    use();
    {
        const std::lock_guard lock(connecting_);
        if (ranks_) disconnected_ = false; // it was of the connection before
        ranks_.reset();
    }
    auto ranks = std::make_unique<Ranks>(group, stream_, disconnected_);
    const std::lock_guard lock(connecting_);
    if (disconnected_) throw Error(PB_FAILED, "disconnected while it connected");
    ranks_ = std::move(ranks);
    add_collectives(ops_);
}

void CudaDevice::disconnect() noexcept {
    disconnected_ = true; // who connects gives up
    const std::lock_guard lock(connecting_);
    if (ranks_) ranks_->abort();
}

void CudaDevice::begin_step() {
    use();
    fault_.clear();
    for (const Later& copy : std::exchange(later_, {})) pinned_.push_back(copy.pinned); // of one that was given up
}

void CudaDevice::submit_step() {
    use();
    if (!faulty()) before_op("the step's end");
    // In order with the kernels: the next step may have begun by the time that the host looks.
    auto kernel_fault = std::make_unique<int32_t>(0);
    to_host_async(kernel_fault.get(), kernel_fault_, sizeof *kernel_fault_);
    check_cuda(cudaMemsetAsync(kernel_fault_, 0, sizeof *kernel_fault_, stream_), "cudaMemsetAsync");
    Submitted step{nullptr, std::exchange(fault_, {}), std::exchange(later_, {}), std::move(kernel_fault)};
    check_cuda(cudaEventCreateWithFlags(&step.done, cudaEventDisableTiming), "an event");
    submitted_.push_back(std::move(step));
    check_cuda(cudaEventRecord(submitted_.back().done, stream_), "the end of a step");
}

void CudaDevice::wait_step() {
    use();
    if (submitted_.empty()) throw Error(PB_INVALID, "no step is in flight");
    const Submitted step = std::move(submitted_.front());
    submitted_.pop_front();
    finish(step);
}

void CudaDevice::end_step() { // those before it are still to be waited for
    submit_step();
    const Submitted step = std::move(submitted_.back());
    submitted_.pop_back();
    finish(step);
}

void CudaDevice::finish(const Submitted& step) {
    const cudaError_t code = cudaEventSynchronize(step.done);
    cudaEventDestroy(step.done);
    for (const Later& copy : step.later) {
        if (code == cudaSuccess) std::memcpy(copy.to, copy.pinned.memory, copy.bytes);
        pinned_.push_back(copy.pinned);
    }
    if (!step.fault.empty()) throw Error(PB_INVALID, step.fault);
    check_cuda(code, "the GPU stopped in this step or before it (check_each_op names the op)");
    if (ranks_ && ranks_->aborted()) throw Error(PB_FAILED, "disconnected from the other ranks");
    if (*step.kernel_fault != 0)
        throw Error(PB_INVALID, text_of(static_cast<kernels::cuda::KernelFault>(*step.kernel_fault)));
}

cudaError_t CudaDevice::latest_error() const {
    const cudaError_t code = cudaGetLastError();
    return code == cudaSuccess && check_each_op_ && !capturing_ ? cudaStreamSynchronize(stream_) : code;
}

void CudaDevice::after_op(const char* op) noexcept {
    if (const cudaError_t code = latest_error(); code != cudaSuccess)
        set_fault(std::string(op) + ": " + cudaGetErrorString(code));
}

// Attention and samplers start kernels in this stream themselves, and attention's calls return no status.
void CudaDevice::before_op(const char* next) noexcept {
    if (const cudaError_t code = latest_error(); code != cudaSuccess)
        set_fault("attention, or another plugin's kernel, before " + std::string(next) + ": " +
                  cudaGetErrorString(code));
}

void CudaDevice::graph_begin() {
    use();
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    capturing_ = true;
}

pb_graph* CudaDevice::graph_end() {
    if (!faulty()) before_op("the end of a capture");
    capturing_ = false;
    cudaGraph_t recorded = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_, &recorded);
    if (ended != cudaSuccess) cudaGetLastError();
    if (!fault_.empty()) {
        if (recorded) cudaGraphDestroy(recorded);
        throw Error(PB_FAILED, "capturing: " + fault_);
    }
    check_cuda(ended, "cudaStreamEndCapture");
    auto graph = std::make_unique<pb_graph>();
    size_t before = 0, after = 0, total = 0;
    cudaMemGetInfo(&before, &total);
    cudaError_t code = cudaGraphInstantiate(&graph->exec, recorded, 0);
    cudaGraphDestroy(recorded);
    check_cuda(code, "cudaGraphInstantiate");
    code = cudaGraphUpload(graph->exec, stream_);
    if (code != cudaSuccess) cudaGraphExecDestroy(graph->exec);
    check_cuda(code, "cudaGraphUpload");
    cudaMemGetInfo(&after, &total);
    graph->bytes = before > after ? before - after : 1;
    return graph.release();
}

void CudaDevice::graph_launch(pb_graph* graph) {
    if (faulty()) return;
    check_cuda(cudaGraphLaunch(graph->exec, stream_), "cudaGraphLaunch");
}

void CudaDevice::graph_free(pb_graph* graph) noexcept {
    if (!graph) return;
    cudaSetDevice(index_);
    cudaGraphExecDestroy(graph->exec);
    delete graph;
}

}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::device<patchbay::CudaDevice>(
    {.name = "cuda", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "one NVIDIA GPU from sm_80 on: bf16 or f32 activations, f32, bf16, 8-bit or 4-bit weights"}))
