// Attention in its most direct form, in double, for the device `cpu`: tests compare other backends with it.
#include <cstdio>
#include <string_view>

#include "kernels/kv_codes.hpp"
#include "kernels/reference.hpp"
#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

class Reference {
  public:
    using Bound = kernels::AttentionShape;
    static constexpr uint32_t kCapabilities = PB_ATTENTION_SLOPES | PB_ATTENTION_SINKS;

    explicit Reference(const Context& context) : pool_(context.host()) {}

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        const auto bound = bind(spec);
        pb_attention_layout out = patchbay::sized<pb_attention_layout>();
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
        if (spec.head_dim == 0 || spec.head_dim > 65536)
            refuse("head_dim " + std::to_string(spec.head_dim) + " not in 1 to 65536");
        check_heads_and_pages(spec);
        return std::make_unique<Bound>(kernels::shape_of(spec));
    }

    void plan(Bound& bound, const pb_attention_batch& batch, void*) const {
        if (const std::string fault = kernels::fault_of(bound, kernels::batch_of(batch)); !fault.empty())
            throw Error(PB_INVALID, fault);
    }

    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        kernels::reference::append_kv(bound, kernels::batch_of(batch), kernels::pages_of(kv), k, v);
    }

    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        const kernels::AttentionBatch view = kernels::batch_of(batch);
        pool_.run(view.seq_count, [&](uint32_t s) {
            kernels::reference::attend(bound, view, kernels::pages_of(kv), out, q, s, view.query_starts[s],
                                       view.query_starts[s + 1]);
        });
    }

  private:
    Pool pool_;
};

}  // namespace
}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::attention<patchbay::Reference>(
    {.name = "reference", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "attention in double, straight from its definition"}))
