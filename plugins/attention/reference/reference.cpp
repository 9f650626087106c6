// Attention as it is written down, in double, for the device `cpu`: what other backends are compared with.
#include <cstdio>
#include <string_view>

#include "kernels/kv_codes.hpp"
#include "kernels/reference.hpp"
#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

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

class Reference {
  public:
    using Bound = kernels::AttentionShape;

    explicit Reference(const Context& context) : pool_(context.host()) {}

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        const auto bound = bind(spec);
        pb_attention_layout out{};
        out.struct_size = sizeof out;
        out.page_bytes = kernels::reference::page_bytes(*bound);
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "rows/%s/block%u/heads%ux%u", dtype_name(spec.kv_dtype),
                      spec.block_size, spec.kv_heads, spec.head_dim);
        return out;
    }

    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) const {
        const auto refuse = [](const std::string& why) { throw Error(PB_UNSUPPORTED, why); };
        const std::string_view device = spec.device ? spec.device : "";
        if (device != "cpu") refuse("device '" + std::string(device) + "' is not 'cpu'");
        if (spec.activation_dtype != PB_F32)
            refuse(std::string("activation dtype ") + dtype_name(spec.activation_dtype) + " is not f32");
        if (spec.kv_dtype != PB_F32 && spec.kv_dtype != PB_BF16 && !kernels::in_codes(spec.kv_dtype))
            refuse(std::string("kv dtype ") + dtype_name(spec.kv_dtype) + " not in {f32, bf16, fp8, i8}");
        if (spec.kv_heads == 0 || spec.heads == 0 || spec.heads % spec.kv_heads != 0)
            refuse("heads " + std::to_string(spec.heads) + " is not a multiple of kv_heads " +
                   std::to_string(spec.kv_heads));
        if (spec.heads > kMost || spec.head_dim == 0 || spec.head_dim > kMost || spec.block_size == 0 ||
            spec.block_size > kMost)
            refuse("heads " + std::to_string(spec.heads) + ", head_dim " + std::to_string(spec.head_dim) +
                   " or block_size " + std::to_string(spec.block_size) + " not in 1 to " + std::to_string(kMost));
        return std::make_unique<Bound>(Bound{.heads = int32_t(spec.heads),
                                             .kv_heads = int32_t(spec.kv_heads),
                                             .head_dim = int32_t(spec.head_dim),
                                             .block_size = int32_t(spec.block_size),
                                             .window = spec.sliding_window,
                                             .scale = spec.scale,
                                             .soft_cap = spec.soft_cap,
                                             .kv_dtype = spec.kv_dtype});
    }

    void plan(Bound& bound, const pb_attention_batch& batch, void*) const {
        if (const std::string fault = kernels::fault_of(bound, batch_of(batch)); !fault.empty())
            throw Error(PB_INVALID, fault);
    }

    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        kernels::reference::append_kv(bound, batch_of(batch), {kv.data, kv.page_stride}, k, v);
    }

    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        const kernels::AttentionBatch view = batch_of(batch);
        pool_.run(view.seq_count, [&](uint32_t s) {
            kernels::reference::attend(bound, view, {kv.data, kv.page_stride}, out, q, s, view.query_starts[s],
                                       view.query_starts[s + 1]);
        });
    }

  private:
    static constexpr uint32_t kMost = 65536;
    Pool pool_;
};

}  // namespace
}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::attention<patchbay::Reference>(
    {.name = "reference", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "attention in double, straight from its definition"}))
