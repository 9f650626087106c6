// Fast attention over pages for the device `cpu`: the kernels' CpuAttention behind the plugin contract.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kernels/cpu_attention.hpp"
#include "kernels/kv_codes.hpp"
#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/attention_cost.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

kernels::Isa choose_isa(const Context& context) {
    const kernels::IsaChoice choice =
        kernels::choose_isa(context.get<std::string>("isa"), std::getenv(kernels::kIsaVariable));
    if (choice.verdict == kernels::IsaChoice::Verdict::Unknown) throw Error(PB_INVALID, choice.reason);
    if (choice.verdict == kernels::IsaChoice::Verdict::Unavailable) throw Error(PB_UNAVAILABLE, choice.reason);
    return choice.isa;
}

kernels::AttentionShape shape_of(const pb_attention_spec& spec) {
    return {.heads = int32_t(spec.heads),
            .kv_heads = int32_t(spec.kv_heads),
            .head_dim = int32_t(spec.head_dim),
            .block_size = int32_t(spec.block_size),
            .window = spec.sliding_window,
            .scale = spec.scale,
            .soft_cap = spec.soft_cap,
            .kv_dtype = spec.kv_dtype};
}

kernels::AttentionBatch batch_of(const pb_attention_batch& b) {
    return {.seq_count = b.seq_count,
            .max_blocks = b.max_blocks,
            .token_count = int32_t(b.token_count),
            .query_starts = b.query_starts,
            .seq_lens = b.seq_lens,
            .block_tables = b.block_tables,
            .slot_mapping = b.slot_mapping,
            .positions = b.positions};
}

class Paged {
  public:
    static constexpr const char* kIsas[] = {"auto", "plain", "avx2", "avx512", "amx", nullptr};
    static constexpr pb_param kParams[] = {
        param::choice("isa", "auto", kIsas, "instructions to use; PATCHBAY_CPU_ISA may lower it"),
    };

    struct Bound {
        pb_attention_spec spec; // its device: not to be read
        kernels::AttentionShape shape;
        kernels::CpuAttention attention;
    };

    explicit Paged(const Context& context) : pool_(context.host()), machine_{choose_isa(context), {}} {
        machine_.crew.threads = pool_.threads();
        machine_.crew.ctx = &pool_;
        machine_.crew.run = [](void* ctx, uint32_t count, void (*task)(void* arg, uint32_t index), void* arg) {
            static_cast<const Pool*>(ctx)->run(count, [&](uint32_t i) { task(arg, i); });
        };
    }

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        check(spec);
        pb_attention_layout out{};
        out.struct_size = sizeof out;
        const bool simulated = std::string_view(spec.device ? spec.device : "") == "sim"; // where cost() is asked anew
        out.graphs = simulated ? PB_GRAPHS_ANY : PB_GRAPHS_NONE;
        out.page_bytes = kernels::CpuAttention(machine_, shape_of(spec)).page_bytes();
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "%s/%s/block%u/heads%ux%u",
                      kernels::in_codes(spec.kv_dtype) ? "kx16+v+scales" : "kx16+vx2", dtype_name(spec.kv_dtype),
                      spec.block_size, spec.kv_heads, spec.head_dim);
        return out;
    }

    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) const {
        check(spec);
        return std::make_unique<Bound>(Bound{spec, shape_of(spec), kernels::CpuAttention(machine_, shape_of(spec))});
    }

    void plan(Bound& bound, const pb_attention_batch& batch, void*) const {
        const kernels::AttentionBatch view = batch_of(batch);
        if (const std::string fault = kernels::fault_of(bound.shape, view);
            !fault.empty())
            throw Error(PB_INVALID, fault);
        bound.attention.plan(view);
    }

    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        bound.attention.append_kv(batch_of(batch), {kv.data, kv.page_stride}, k, v);
    }

    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        bound.attention.run(batch_of(batch), {kv.data, kv.page_stride}, out, q);
    }

    pb_cost cost(const Bound& bound, const pb_attention_batch& batch) const {
        return attention_cost(bound.spec, batch);
    }

  private:
    static void check(const pb_attention_spec& spec) {
        const auto refuse = [](const std::string& why) { throw Error(PB_UNSUPPORTED, why); };
        const std::string_view device = spec.device ? spec.device : "";
        const bool computes = device != "sim";
        if (computes && device != "cpu") refuse("device '" + std::string(device) + "' is not 'cpu' or 'sim'");
        if (computes && spec.activation_dtype != PB_F32)
            refuse(std::string("activation dtype ") + dtype_name(spec.activation_dtype) + " is not f32");
        if (spec.kv_dtype != PB_F32 && spec.kv_dtype != PB_BF16 && !kernels::in_codes(spec.kv_dtype))
            refuse(std::string("kv dtype ") + dtype_name(spec.kv_dtype) + " not in {f32, bf16, fp8, i8}");
        if (spec.head_dim == 0 || spec.head_dim % 2 != 0)
            refuse("head_dim " + std::to_string(spec.head_dim) + " is not even (--attention reference takes any)");
        if (spec.head_dim > kernels::CpuAttention::kMaxHeadDim)
            refuse("head_dim " + std::to_string(spec.head_dim) + " is above " +
                   std::to_string(kernels::CpuAttention::kMaxHeadDim) + " (--attention reference takes any)");
        if (spec.kv_heads == 0 || spec.heads == 0 || spec.heads % spec.kv_heads != 0)
            refuse("heads " + std::to_string(spec.heads) + " is not a multiple of kv_heads " +
                   std::to_string(spec.kv_heads));
        if (spec.heads > kMost || spec.block_size == 0 || spec.block_size > kMost)
            refuse("heads " + std::to_string(spec.heads) + " or block_size " + std::to_string(spec.block_size) +
                   " not in 1 to " + std::to_string(kMost));
    }

    static constexpr uint32_t kMost = 65536;
    Pool pool_;
    kernels::Machine machine_;
};

}  // namespace
}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::attention<patchbay::Paged>(
    {.name = "paged", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "fast attention over pages on the CPU, batch-invariant"}))
