// Fast attention over pages for the device `cpu`: the kernels' CpuAttention as a plugin.
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

class Paged {
  public:
    static constexpr const char* kIsas[] = {"auto", "plain", "avx2", "avx512", "amx", nullptr};
    static constexpr pb_param kParams[] = {
        param::choice("isa", "auto", kIsas, "instructions to use; PATCHBAY_CPU_ISA may lower it"),
    };

    static constexpr uint32_t kCapabilities = PB_ATTENTION_SLOPES | PB_ATTENTION_SINKS;

    struct Bound {
        pb_attention_spec spec; // its device must not be read
        kernels::AttentionShape shape;
        kernels::CpuAttention attention;
    };

    explicit Paged(const Context& context) : pool_(context.host()), machine_{choose_isa(context), {}} {
        machine_.workers.threads = pool_.threads();
        machine_.workers.ctx = &pool_;
        machine_.workers.run = [](void* ctx, uint32_t count, void (*task)(void* arg, uint32_t index), void* arg) {
            static_cast<const Pool*>(ctx)->run(count, [&](uint32_t i) { task(arg, i); });
        };
    }

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        check(spec);
        pb_attention_layout out = patchbay::sized<pb_attention_layout>();
        out.graphs = spec.simulated ? PB_GRAPHS_ANY : PB_GRAPHS_NONE; // cost() is called for each replay
        out.page_bytes = kernels::CpuAttention(machine_, kernels::shape_of(spec)).page_bytes();
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "%s/%s/block%u/heads%ux%u",
                      kernels::in_codes(spec.kv_dtype) ? "kx16+v+scales" : "kx16+vx2", dtype_name(spec.kv_dtype),
                      spec.block_size, spec.kv_heads, spec.head_dim);
        return out;
    }

    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) const {
        check(spec);
        const kernels::AttentionShape shape = kernels::shape_of(spec);
        return std::make_unique<Bound>(Bound{spec, shape, kernels::CpuAttention(machine_, shape)});
    }

    void plan(Bound& bound, const pb_attention_batch& batch, void*) const {
        const kernels::AttentionBatch view = kernels::batch_of(batch);
        if (const std::string fault = kernels::fault_of(bound.shape, view);
            !fault.empty())
            throw Error(PB_INVALID, fault);
        bound.attention.plan(view);
    }

    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        bound.attention.append_kv(kernels::batch_of(batch), kernels::pages_of(kv), k, v);
    }

    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        bound.attention.run(kernels::batch_of(batch), kernels::pages_of(kv), out, q);
    }

    pb_cost cost(const Bound& bound, const pb_attention_batch& batch) const {
        return attention_cost(bound.spec, batch);
    }

  private:
    static void check(const pb_attention_spec& spec) {
        const auto refuse = [](const std::string& why) { throw Error(PB_UNSUPPORTED, why); };
        const std::string_view device = spec.device ? spec.device : "";
        if (!spec.simulated && device != "cpu") refuse("device '" + std::string(device) + "' is not 'cpu'");
        if (!spec.simulated && spec.activation_dtype != PB_F32)
            refuse(std::string("activation dtype ") + dtype_name(spec.activation_dtype) + " is not f32");
        if (spec.kv_dtype != PB_F32 && spec.kv_dtype != PB_BF16 && !kernels::in_codes(spec.kv_dtype))
            refuse(std::string("kv dtype ") + dtype_name(spec.kv_dtype) + " not in {f32, bf16, fp8, i8}");
        if (spec.head_dim == 0 || spec.head_dim % 2 != 0)
            refuse("head_dim " + std::to_string(spec.head_dim) + " is not even (--attention reference takes any)");
        if (spec.head_dim > kernels::CpuAttention::kMaxHeadDim)
            refuse("head_dim " + std::to_string(spec.head_dim) + " is above " +
                   std::to_string(kernels::CpuAttention::kMaxHeadDim) + " (--attention reference takes any)");
        check_heads_and_pages(spec);
    }

    Pool pool_;
    kernels::Machine machine_;
};

}  // namespace
}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::attention<patchbay::Paged>(
    {.name = "paged", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "fast attention over pages on the CPU, batch-invariant"}))
