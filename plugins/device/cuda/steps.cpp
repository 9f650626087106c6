#include "steps.hpp"

#include <utility>

#include "kernels/cuda.hpp"
#include "patchbay/plugin.hpp"

namespace patchbay {
namespace {

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

}  // namespace

Steps::Steps(Gpu& gpu, const RankConnection& connection)
    : gpu_(gpu), connection_(connection), kernel_fault_(gpu, sizeof(int32_t)), copies_(gpu) {
    check_cuda(cudaMemsetAsync(kernel_fault(), 0, sizeof(int32_t), gpu_.stream()), "cudaMemsetAsync");
}

Steps::~Steps() {
    for (const InFlight& step : in_flight_) {
        cudaEventDestroy(step.done);
        copies_.drop(step.copies);
    }
}

void Steps::begin_step() {
    gpu_.use();
    fault_.clear();
    copies_.drop_started();
}

// After a kernel that broke the GPU all calls fail, those of the step's end, too: the first fault counts.
void Steps::submit_step() {
    if (!faulty()) before_op("the step's end");
    const std::string first = fault_;
    try {
        enqueue_end();
    } catch (const Error&) {
        if (first.empty()) throw;
        throw Error(PB_INVALID, first);
    }
}

void Steps::enqueue_end() {
    gpu_.use();
    // In order with the kernels: the next step may have begun by the time that the host looks.
    auto found = std::make_unique<int32_t>(0);
    copies_.start(found.get(), kernel_fault(), sizeof *found);
    check_cuda(cudaMemsetAsync(kernel_fault(), 0, sizeof *found, gpu_.stream()), "cudaMemsetAsync");
    cudaEvent_t done = nullptr;
    check_cuda(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "an event");
    in_flight_.push_back({done, std::exchange(fault_, {}), copies_.end_step(), std::move(found)});
    const cudaError_t recorded = cudaEventRecord(done, gpu_.stream());
    if (recorded == cudaSuccess) return;
    copies_.drop(in_flight_.back().copies);
    in_flight_.pop_back();
    cudaEventDestroy(done);
    check_cuda(recorded, "the end of a step");
}

void Steps::wait_step() {
    gpu_.use();
    if (in_flight_.empty()) throw Error(PB_INVALID, "no step is in flight");
    const InFlight step = std::move(in_flight_.front());
    in_flight_.pop_front();
    finish(step);
}

void Steps::end_step() {
    submit_step();
    const InFlight step = std::move(in_flight_.back());
    in_flight_.pop_back();
    finish(step);
}

void Steps::to_host_async(void* to, const void* from, uint64_t bytes) {
    gpu_.use();
    copies_.start(to, from, bytes);
}

void Steps::finish(const InFlight& step) {
    const cudaError_t code = cudaEventSynchronize(step.done);
    cudaEventDestroy(step.done);
    if (code == cudaSuccess) copies_.finish(step.copies);
    else copies_.drop(step.copies);
    if (!step.fault.empty()) throw Error(PB_INVALID, step.fault);
    check_cuda(code, "the GPU stopped in this step or before it (check_each_op names the op)");
    if (connection_.is_lost()) throw Error(PB_FAILED, "disconnected from the other ranks");
    if (*step.kernel_fault != 0)
        throw Error(PB_INVALID, text_of(static_cast<kernels::cuda::KernelFault>(*step.kernel_fault)));
}

void Steps::after_op(const char* op) noexcept {
    if (const cudaError_t code = gpu_.latest_error(); code != cudaSuccess)
        set_fault(std::string(op) + ": " + cudaGetErrorString(code));
}

// Attention and samplers start kernels in this stream themselves, and attention's calls return no status.
void Steps::before_op(const char* next) noexcept {
    if (const cudaError_t code = gpu_.latest_error(); code != cudaSuccess)
        set_fault("attention, or another plugin's kernel, before " + std::string(next) + ": " +
                  cudaGetErrorString(code));
}

}  // namespace patchbay
