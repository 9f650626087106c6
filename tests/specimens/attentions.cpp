// A healthy attention in double, and ones each wrong in one way, as components of one library.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "kernels/reference.hpp"
#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace {

using patchbay::Error;
namespace kernels = patchbay::kernels;

class Softmax {
  public:
    using Bound = kernels::AttentionShape;

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        pb_attention_layout out = patchbay::sized<pb_attention_layout>();
        out.page_bytes = kernels::reference::page_bytes(*bind(spec));
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "specimen");
        return out;
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec& s) const {
        if (std::string_view(s.device) != "cpu" || s.kv_dtype != PB_F32 || s.activation_dtype != PB_F32)
            throw Error(PB_UNSUPPORTED, "only f32 on cpu");
        if (s.kv_heads == 0 || s.heads % s.kv_heads != 0 || s.head_dim == 0 || s.block_size == 0)
            throw Error(PB_UNSUPPORTED, "no such shape");
        return std::make_unique<Bound>(kernels::shape_of(s));
    }
    void plan(Bound&, const pb_attention_batch&, void*) const {}
    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        kernels::reference::append_kv(bound, kernels::batch_of(batch), kernels::pages_of(kv), k, v);
    }
    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        for (uint32_t s = 0; s < batch.seq_count; ++s)
            kernels::reference::attend(bound, kernels::batch_of(batch), kernels::pages_of(kv), out, q, s,
                                       batch.query_starts[s], batch.query_starts[s + 1]);
    }

  protected:
    static void scale(const pb_tensor& t, float by) noexcept {
        float* x = static_cast<float*>(t.data);
        std::for_each_n(x, patchbay::elements(t), [by](float& e) { e *= by; });
    }
};

constexpr float kNearlyOne = 1.000001f;  // other bits, well within the tolerance

struct HasNoTag : Softmax {
    pb_attention_layout describe(const pb_attention_spec& spec) const {
        auto out = Softmax::describe(spec);
        out.layout_tag[0] = 0;
        return out;
    }
};

struct TakesAnyDevice : Softmax {
    pb_attention_layout describe(pb_attention_spec spec) const {
        spec.device = "cpu";
        return Softmax::describe(spec);
    }
};

struct ScalesWrongly : Softmax {
    pb_attention_layout describe(const pb_attention_spec& spec) const { return bind(spec), Softmax::describe(spec); }
    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) const {
        if (spec.sliding_window > 0) throw Error(PB_UNSUPPORTED, "no windows");
        const float usual = 1 / std::sqrt(static_cast<float>(spec.head_dim));
        if (spec.soft_cap > 0 || spec.scale != usual) throw Error(PB_UNSUPPORTED, "only the usual scale, and no cap");
        auto bound = Softmax::bind(spec);
        bound->scale *= 1.01f;
        return bound;
    }
};

struct SeesPastItsWindow : Softmax {
    std::unique_ptr<Bound> bind(pb_attention_spec spec) const {
        if (spec.sliding_window > 0) spec.sliding_window += 1;
        return Softmax::bind(spec);
    }
};

struct ReadsFreedPages : Softmax {
    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        for (int32_t i = batch.block_starts[0]; i < batch.block_starts[batch.seq_count]; ++i)
            seen_ = *(kv.data + batch.blocks[i] * static_cast<int64_t>(kv.page_stride));
        Softmax::run(bound, batch, kv, out, q);
    }
    mutable volatile uint8_t seen_ = 0;
};

struct TakesAScaleOfItsOwn : Softmax {
    std::unique_ptr<Bound> bind(pb_attention_spec spec) const {
        spec.scale = 1 / std::sqrt(static_cast<float>(spec.head_dim));
        return Softmax::bind(spec);
    }
};

struct ForgetsTheSoftCap : Softmax {
    std::unique_ptr<Bound> bind(pb_attention_spec spec) const {
        spec.soft_cap = 0;
        return Softmax::bind(spec);
    }
};

struct ForgetsTheSlopes : Softmax {
    static constexpr uint32_t kCapabilities = PB_ATTENTION_SLOPES;
    std::unique_ptr<Bound> bind(pb_attention_spec spec) const {
        auto bound = Softmax::bind(spec);
        bound->slopes = nullptr;
        return bound;
    }
};

struct ForgetsTheSinks : Softmax {
    static constexpr uint32_t kCapabilities = PB_ATTENTION_SINKS;
    void run(Bound& bound, const pb_attention_batch& batch, pb_kv_view kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        kv.sinks = nullptr;
        Softmax::run(bound, batch, kv, out, q);
    }
};

struct TreatsChunksOtherwise : Softmax {
    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        Softmax::run(bound, batch, kv, out, q);
        if (batch.token_count > 0 && batch.positions[0] > 0) scale(out, kNearlyOne);
    }
};

struct TreatsBatchesOtherwise : Softmax {
    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        Softmax::run(bound, batch, kv, out, q);
        if (batch.seq_count > 1) scale(out, kNearlyOne);
    }
};

struct WritesIntoAFreePage : Softmax {
    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        Softmax::append_kv(bound, batch, kv, k, v);
        const int32_t* tables = batch.blocks + batch.block_starts[0];
        const int32_t* end = batch.blocks + batch.block_starts[batch.seq_count];
        for (uint32_t page = 0; page < kv.page_count; ++page)
            if (std::find(tables, end, static_cast<int32_t>(page)) == end) {
                std::memset(kv.data + page * kv.page_stride, 0, 4);
                return;
            }
    }
};

struct PutsWhatHasNoSlotIntoTheFirst : Softmax {
    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        Softmax::append_kv(bound, batch, kv, k, v);
        for (uint32_t t = 0; t < batch.token_count; ++t)
            if (batch.slot_mapping[t] < 0) std::memset(kv.data, 0, 4);
    }
};

struct FailsWithoutTokens : Softmax {
    void plan(Bound&, const pb_attention_batch& batch, void*) const {
        if (batch.token_count == 0) throw Error(PB_INVALID, "nothing to attend to");
    }
};

template <class T>
constexpr pb_component component(const char* name) {
    return patchbay::attention<T>({.name = name, .version = "1.0.0", .summary = "for the tests of the probe"});
}

}  // namespace

#ifdef READS_FREED_PAGES // and ends the process by it
PATCHBAY_PLUGIN(component<ReadsFreedPages>("reads_freed_pages"))
#else
PATCHBAY_PLUGIN(component<Softmax>("healthy"), component<HasNoTag>("has_no_tag"),
                component<TakesAnyDevice>("takes_any_device"), component<ScalesWrongly>("scales_wrongly"),
                component<SeesPastItsWindow>("sees_past_its_window"),
                component<TakesAScaleOfItsOwn>("takes_a_scale_of_its_own"),
                component<ForgetsTheSoftCap>("forgets_the_soft_cap"),
                component<ForgetsTheSlopes>("forgets_the_slopes"), component<ForgetsTheSinks>("forgets_the_sinks"),
                component<TreatsChunksOtherwise>("treats_chunks_otherwise"),
                component<TreatsBatchesOtherwise>("treats_batches_otherwise"),
                component<WritesIntoAFreePage>("writes_into_a_free_page"),
                component<PutsWhatHasNoSlotIntoTheFirst>("puts_what_has_no_slot_into_the_first"),
                component<FailsWithoutTokens>("fails_without_tokens"))
#endif
