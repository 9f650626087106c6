#include "conformance/model_case.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/lent_memory.hpp"
#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint64_t kSeed = 2026;

}  // namespace

ModelCase::ModelCase(const host::Component& component, const pb_model_facts& facts)
    : component_(component), facts_(facts), weights_(kSeed) {}

Result<std::unique_ptr<ModelCase>> ModelCase::make(const host::Component& component, const pb_model_facts& facts) {
    std::unique_ptr<ModelCase> out(new ModelCase(component, facts));
    if (const auto* const head = component.extension<pb_draft_head>()) {
        out->head_ = true;
        if (facts.layer_count == 0) out->draft_steps_ = head->max_draft_depth(component.self());
    }
    PB_CHECK(out->weights_.draw(component, facts));
    PB_CHECK(out->kv_.lay_out(component, facts.layer_count));
    out->features_ = Noise(kSeed + 1).reals(size_t{SequenceKv::kMaxTokens} * facts.hidden_size);
    return out;
}

Result<ModelCase::Computed> ModelCase::compute(std::span<const int32_t> ids, std::span<const uint32_t> pieces) {
    Computed out;
    kv_.clear();
    for (uint32_t step = 0; step < std::max(draft_steps_, 1u); ++step) {
        uint32_t begin = 0;
        for (const uint32_t piece : pieces) {
            PB_CHECK(pass(ids.subspan(begin, piece), begin, step, out));
            begin += piece;
        }
    }
    return out;
}

pb_tensor ModelCase::temp(pb_dtype dtype, int32_t rank, const int64_t* shape) {
    pb_tensor t{};
    t.dtype = dtype;
    t.rank = rank;
    int64_t count = 1;
    for (int32_t d = PB_MAX_RANK; d-- > 0;) {
        t.shape[d] = d < rank ? shape[d] : 1;
        t.strides[d] = count;
        count *= t.shape[d];
    }
    temps_.emplace_back(static_cast<size_t>(count) * 2, NAN); // room for 8 bytes each
    t.data = temps_.back().data();
    return t;
}

Result<> ModelCase::pass(std::span<const int32_t> ids, uint32_t begin, uint32_t draft_step, Computed& to) {
    const auto tokens = static_cast<int64_t>(ids.size());
    std::vector<int32_t> given(ids.begin(), ids.end()), rows(ids.size()), feature_rows(ids.size());
    positions_.resize(ids.size());
    std::iota(positions_.begin(), positions_.end(), static_cast<int32_t>(begin));
    std::iota(rows.begin(), rows.end(), 0);
    feature_rows = positions_;
    starts_ = {0, static_cast<int32_t>(tokens)};
    temps_.clear();
    constexpr float kGuard = 7.5f;
    const size_t logit_count = ids.size() * facts_.vocab_size;
    std::vector<float> logits(logit_count + 16, NAN), hidden(ids.size() * facts_.hidden_size, NAN);
    std::fill(logits.begin() + static_cast<ptrdiff_t>(logit_count), logits.end(), kGuard);
    const bool gives_hidden = facts_.flags & PB_MODEL_GIVES_HIDDEN || (head_ && facts_.layer_count > 0);

    const auto ints = [](std::vector<int32_t>& v) {
        return tensor(v.data(), PB_I32, {static_cast<int64_t>(v.size())});
    };
    pb_forward f = sized<pb_forward>();
    f.token_count = static_cast<uint32_t>(tokens);
    f.ops = &device_.ops();
    f.weights = weights_.handles();
    f.ids = ints(given);
    f.positions = ints(positions_);
    f.logit_rows = ints(rows);
    f.logits = tensor(logits.data(), PB_F32, {tokens, facts_.vocab_size});
    f.activation_dtype = PB_F32;
    f.draft_step = draft_step;
    f.ctx = this;
    f.temp = [](void* ctx, pb_dtype dtype, int32_t rank, const int64_t* shape) {
        return static_cast<ModelCase*>(ctx)->temp(dtype, rank, shape);
    };
    f.attend = [](void* ctx, uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k,
                  const pb_tensor* v) {
        auto& c = *static_cast<ModelCase*>(ctx);
        const Result<> done = c.kv_.attend(layer, c.positions_, *out, *q, k, v);
        if (!done) c.device_.set_fault(done.error());
    };
    f.state = [](void* ctx, uint32_t, pb_state* out) {
        auto& c = *static_cast<ModelCase*>(ctx);
        c.state_page_.resize(kStatePage);
        *out = {sizeof *out,
                1,
                c.state_page_.data(),
                kStatePage * sizeof(float),
                tensor(c.one_page_.data(), PB_I32, {1}),
                tensor(c.starts_.data(), PB_I32, {2}),
                tensor(c.first_chunk_.data(), PB_I32, {1})};
    };
    if (gives_hidden) f.hidden = tensor(hidden.data(), PB_F32, {tokens, facts_.hidden_size});
    if (head_) {
        f.features = tensor(features_.data(), PB_F32, {SequenceKv::kMaxTokens, facts_.hidden_size});
        f.feature_rows = ints(feature_rows);
    }
    LentMemory memory;
    PB_CHECK(host::checked<&pb_model::forward>(component_, memory.lend(f)));
    if (!memory.end_call()) return fail("forward writes past the end of its arguments");
    if (device_.faulty()) return fail("forward calls an op that fails: " + device_.fault());
    for (size_t i = logit_count; i < logits.size(); ++i)
        if (logits[i] != kGuard) return fail("forward writes past the end of the logits");
    to.logits.insert(to.logits.end(), logits.begin(), logits.begin() + static_cast<ptrdiff_t>(logit_count));
    if (gives_hidden) to.hidden.insert(to.hidden.end(), hidden.begin(), hidden.end());
    return {};
}

}  // namespace patchbay::conformance
