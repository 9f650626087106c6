// kept_sdk - attention of f32 rows in host memory, over the SDK.
#include <cstdio>

#include "grown.hpp"
#include "patchbay/sdk/attention.hpp"
#include "rows.h"

namespace {

class Kept {
  public:
    struct Bound {
        rows_shape shape;
        double acc[1024];
    };

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        check(spec);
        auto out = patchbay::sized<pb_attention_layout>();
        out.page_bytes = rows_page_bytes(&spec);
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "kept/%ux%ux%u", spec.block_size, spec.kv_heads,
                      spec.head_dim);
        return out;
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) const {
        check(spec);
        auto out = std::make_unique<Bound>();
        out->shape = rows_shape_of(&spec);
        return out;
    }
    void plan(Bound&, const pb_attention_batch& batch, void*) const {
        kept::expect_zero_growth(batch, "pb_attention_batch");
    }
    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        kept::expect_zero_growth(kv, "pb_kv_view"); // ends the process otherwise
        rows_append(&bound.shape, &batch, &kv, &k, &v);
    }
    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        rows_run(&bound.shape, &batch, &kv, &out, &q, bound.acc);
    }

  private:
    static void check(const pb_attention_spec& spec) {
        kept::expect_zero_growth(spec, "pb_attention_spec");
        if (const char* const why = rows_refusal(&spec)) throw patchbay::Error(PB_UNSUPPORTED, why);
    }
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::attention<Kept>({.name = "kept_sdk", .version = "1.0.0", .summary = "attention in plain loops"}))
