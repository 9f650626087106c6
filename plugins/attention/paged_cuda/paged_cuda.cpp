// Attention over pages for the device `cuda`: kernels/cuda as a plugin. The plan is made on the host
// and copied to its buffer; the launches of append_kv() and run() depend on nothing else that changes between steps,
// so both may be captured for any batch.
#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

#include "kernels/cuda_attention.hpp"
#include "kernels/cuda_pinned.hpp"
#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/attention_cost.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

namespace cuda = kernels::cuda;

void check_cuda(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    cudaGetLastError(); // clears the error, or the device's next check would report it again
    throw Error(PB_FAILED, std::string(what) + ": " + cudaGetErrorString(code));
}

// Pinned memory that plans are copied from, one slot for each step: two steps may be in flight.
class PlanCopies {
  public:
    explicit PlanCopies(uint64_t bytes) {
        for (cuda::PinnedMemory& slot : slots_) check_cuda(slot.allocate(bytes), "pinned memory for plans");
    }

    void copy(const cuda::AttentionPlan& plan, const cuda::AttentionLayout& layout, uint8_t* to, cudaStream_t stream) {
        const cuda::PinnedMemory& slot = slots_[next_];
        next_ = (next_ + 1) % slots_.size();
        check_cuda(cudaEventSynchronize(slot.free), "waiting for a plan's copy");
        const cuda::AttentionHeader header = plan.header();
        std::memcpy(slot.memory, &header, sizeof header);
        const auto part = [&](uint64_t at, const auto& values) {
            if (values.empty()) return;
            const size_t bytes = values.size() * sizeof values[0];
            std::memcpy(slot.memory + at, values.data(), bytes);
            check_cuda(cudaMemcpyAsync(to + at, slot.memory + at, bytes, cudaMemcpyHostToDevice, stream), "a plan");
        };
        check_cuda(cudaMemcpyAsync(to, slot.memory, sizeof header, cudaMemcpyHostToDevice, stream), "a plan");
        part(layout.items, plan.items);
        part(layout.merges, plan.merges);
        check_cuda(cudaEventRecord(slot.free, stream), "an event");
    }

  private:
    std::array<cuda::PinnedMemory, 3> slots_;
    size_t next_ = 0;
};

class PagedCuda {
  public:
    static constexpr const char* kDevice = "cuda";
    static constexpr uint32_t kCapabilities = PB_ATTENTION_SINKS;
    struct Bound {
        pb_attention_spec spec; // its device must not be read
        kernels::AttentionShape shape;
        cuda::AttentionLimits limits;
        cuda::AttentionLayout layout;
        std::unique_ptr<PlanCopies> copies; // none if nothing is computed
        cuda::AttentionPlan plan;           // keeps its capacity
        const uint8_t* buffer = nullptr;    // of the latest plan
    };

    explicit PagedCuda(const Context&) {} // looks for a GPU when one is needed: a simulated one needs none

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        check(spec);
        pb_attention_layout out = patchbay::sized<pb_attention_layout>();
        out.graphs = PB_GRAPHS_ANY;
        out.page_bytes = cuda::page_bytes(kernels::shape_of(spec));
        out.plan_bytes = spec.simulated ? 0 : cuda::attention_layout(kernels::shape_of(spec), limits_of(spec)).bytes;
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "k+v/%s/block%u/heads%ux%u", dtype_name(spec.kv_dtype),
                      spec.block_size, spec.kv_heads, spec.head_dim);
        return out;
    }

    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) const {
        check(spec);
        auto bound = std::make_unique<Bound>();
        bound->spec = spec;
        bound->shape = kernels::shape_of(spec);
        if (spec.simulated) return bound;
        bound->limits = limits_of(spec);
        bound->layout = cuda::attention_layout(bound->shape, bound->limits);
        bound->copies = std::make_unique<PlanCopies>(bound->layout.states);
        return bound;
    }

    void plan(Bound& bound, const pb_attention_batch& batch, void* buffer) const {
        const kernels::AttentionBatch view = kernels::batch_of(batch);
        if (const std::string fault = kernels::fault_of(bound.shape, view); !fault.empty())
            throw Error(PB_INVALID, fault);
        if (!bound.copies) return;
        if (!buffer || (batch.token_count > 0 && !batch.device.positions))
            throw Error(PB_INVALID, "the batch's arrays are not in the device's memory");
        if (!cuda::plan_attention(bound.shape, view, bound.limits, bound.plan))
            throw Error(PB_INVALID, "the batch makes " + std::to_string(bound.plan.items.size()) +
                                        " parts, the plan has room for " + std::to_string(bound.limits.items));
        bound.buffer = static_cast<const uint8_t*>(buffer);
        bound.copies->copy(bound.plan, bound.layout, static_cast<uint8_t*>(buffer),
                           static_cast<cudaStream_t>(batch.queue));
    }

    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        cuda::append_kv(batch.queue, bound.shape, kernels::pages_of(kv), batch.device.slot_mapping,
                        batch.token_count, k, v);
    }

    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        cuda::attend(batch.queue,
                     {bound.shape, kernels::pages_of(kv), bound.buffer, bound.layout, batch.device.block_starts,
                      batch.device.blocks, batch.device.positions, bound.limits.grid},
                     out, q);
    }

    pb_cost cost(const Bound& bound, const pb_attention_batch& batch) const {
        pb_cost out = attention_cost(bound.spec, batch);
        out.launches = 4; // one appends, one attends tiles, one few rows, one merges the sums of splits
        return out;
    }

  private:

    static void check(const pb_attention_spec& spec) {
        const auto refuse = [](const std::string& why) { throw Error(PB_UNSUPPORTED, why); };
        const auto real = [](pb_dtype dtype) { return dtype == PB_F32 || dtype == PB_BF16; };
        const std::string_view device = spec.device ? spec.device : "";
        if (!spec.simulated && device != "cuda") refuse("device '" + std::string(device) + "' is not 'cuda'");
        if (!real(spec.activation_dtype))
            refuse(std::string("activation dtype ") + dtype_name(spec.activation_dtype) + " not in {f32, bf16}");
        if (!real(spec.kv_dtype))
            refuse(std::string("kv dtype ") + dtype_name(spec.kv_dtype) +
                   " not in {f32, bf16}: its kernels read no scaled codes (set kv_cache_dtype: bfloat16)");
        if (spec.head_dim == 0 || spec.head_dim % 8 != 0)
            refuse("head_dim " + std::to_string(spec.head_dim) + " is not a multiple of 8");
        if (spec.head_dim > uint32_t(cuda::kMaxHeadDim))
            refuse("head_dim " + std::to_string(spec.head_dim) + " is above " + std::to_string(cuda::kMaxHeadDim));
        check_heads_and_pages(spec);
    }

    // For what this thread's GPU runs at once. Throws Error(PB_UNAVAILABLE).
    static cuda::AttentionLimits limits_of(const pb_attention_spec& spec) {
        int device = 0, multiprocessors = 0, shared = 0;
        cudaError_t code = cudaGetDevice(&device);
        if (code == cudaSuccess)
            code = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        if (code == cudaSuccess)
            code = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
        if (code != cudaSuccess) {
            cudaGetLastError();
            throw Error(PB_UNAVAILABLE, std::string("no NVIDIA driver/GPU: ") + cudaGetErrorString(code));
        }
        const kernels::AttentionShape shape = kernels::shape_of(spec);
        const cuda::AttentionGrid grid = cuda::attention_grid(shape, uint32_t(multiprocessors), uint64_t(shared));
        // If the host does not say how large batches are: vLLM's defaults, and some more.
        const auto or_else = [](uint32_t value, uint32_t other) { return int32_t(value ? value : other); };
        return cuda::attention_limits(shape, or_else(spec.max_seqs, 1024), or_else(spec.max_tokens, 32768),
                                or_else(spec.max_seq_len, 131072), grid);
    }
};

}  // namespace
}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::attention<patchbay::PagedCuda>(
    {.name = "paged_cuda", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "attention over pages on an NVIDIA GPU: tensor cores for bf16 heads of 64 and 128; batch-invariant"}))
