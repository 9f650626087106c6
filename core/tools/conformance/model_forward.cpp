#include "conformance/model_forward.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <span>

#include "conformance/drawn_weights.hpp"
#include "conformance/noise.hpp"
#include "conformance/sequence_kv.hpp"
#include "kernels/reference.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint64_t kSeed = 2026;

// A model under test with weights drawn at random, and its forward passes over one sequence: of a decoder from its
// first token on, of a draft head from hidden states drawn at random.
class ModelCase {
  public:
    // component: after load_config(), which gave the facts.
    static Result<std::unique_ptr<ModelCase>> make(const host::Component& component, const pb_model_facts& facts);

    DrawnWeights& weights() { return weights_; }
    const pb_model_facts& facts() const { return facts_; }
    bool is_head() const { return head_; }
    bool has_states() const { return kv_.has_states(); } // whose sequences are computed in one piece here

    struct Computed {
        std::vector<float> logits; // (tokens, vocab); of a head without layers: for each draft step
        std::vector<float> hidden; // (tokens, hidden), where the model gives them
    };
    // The tokens in pieces of these lengths, each a forward pass: the sum is the number of tokens.
    Result<Computed> compute(std::span<const int32_t> ids, std::span<const uint32_t> pieces);
    Result<Computed> compute(std::span<const int32_t> ids) {
        const uint32_t all = static_cast<uint32_t>(ids.size());
        return compute(ids, {&all, 1});
    }

  private:
    ModelCase(const host::Component& component, const pb_model_facts& facts);
    Result<> pass(std::span<const int32_t> ids, uint32_t begin, uint32_t draft_step, Computed& to);
    pb_tensor temp(pb_dtype, int32_t rank, const int64_t* shape);

    static constexpr uint32_t kStatePage = 1 << 16;
    const host::Component& component_;
    const pb_model_facts facts_;
    ReferenceDevice device_;
    DrawnWeights weights_;
    SequenceKv kv_{weights_};
    std::vector<std::vector<float>> temps_;   // of the pass under way
    std::vector<float> features_, state_page_;
    std::vector<int32_t> positions_;          // of the pass under way
    std::vector<int32_t> starts_, one_page_{0}, first_chunk_{1};
    bool head_ = false;
    uint32_t draft_steps_ = 0;                // of a head without layers
};

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

using Computed = ModelCase::Computed;
constexpr uint32_t kTokens = 24;

std::vector<int32_t> draw_ids(uint32_t vocab) {
    Noise noise(7);
    std::vector<int32_t> ids(kTokens);
    for (int32_t& id : ids) id = static_cast<int32_t>(noise.below(vocab));
    return ids;
}

// Infinite where b alone is not a number: those of a are model.forward's.
double apart(float a, float b) {
    if (!std::isfinite(a)) return 0;
    return std::isfinite(b) ? std::abs(double{a} - b) : std::numeric_limits<double>::infinity();
}

// How far apart, as a share of the largest value; of rows [from, to).
double distance(const std::vector<float>& a, const std::vector<float>& b, size_t from = 0, size_t to = kTokens) {
    const size_t width = a.size() / kTokens;
    double max_size = 0, max_apart = 0;
    for (const float x : a) max_size = std::max(max_size, std::abs(double{x})); // NaN is not greater
    for (size_t i = from * width; i < to * width; ++i) max_apart = std::max(max_apart, apart(a[i], b[i]));
    return max_size == 0 ? max_apart : max_apart / max_size;
}
constexpr double kSame = 1e-4, kOther = 1e-4;

std::string name_of(ModelCase& model, size_t weight) {
    const pb_weight_spec& s = model.weights().spec(weight);
    return "weight " + std::to_string(weight) + (s.part_count > 0 ? " (" + std::string(s.parts[0].name) + ")" : "");
}

// Whether a weight makes what a layer adds to the residual stream: among ranks it is sharded by its columns. Recurrent
// layers are on one rank only, there the width says it.
bool is_output_projection(ModelCase& model, size_t i) {
    if (model.weights().spec(i).role != PB_WEIGHT_LINEAR) return false;
    if (model.has_states()) return model.weights().at(i).rows == model.facts().hidden_size;
    return model.weights().spec(i).shard == PB_SHARD_COLS;
}

}  // namespace

Outcome computes(const host::Component& c, const pb_model&, const pb_model_facts& f) {
    PB_TRY(const auto model, ModelCase::make(c, f));
    const std::vector<int32_t> ids = draw_ids(f.vocab_size);
    PB_TRY(const Computed first, model->compute(ids));
    PB_TRY(const Computed again, model->compute(ids));
    for (size_t i = 0; i < first.logits.size(); ++i)
        if (!std::isfinite(first.logits[i]))
            return fail("logit " + std::to_string(i % f.vocab_size) + " of row " + std::to_string(i / f.vocab_size) +
                        " is " + std::to_string(first.logits[i]));
    if (first.logits != again.logits) return fail("the same tokens have other logits the second time");
    return {};
}

// A decoder's logits depend on the tokens so far: on each of them, and on none that comes later.
Outcome is_causal(const host::Component& c, const pb_model&, const pb_model_facts& f) {
    if (f.layer_count == 0) return Outcome::skip("it has no layers");
    PB_TRY(const auto model, ModelCase::make(c, f));
    std::vector<int32_t> ids = draw_ids(f.vocab_size);
    PB_TRY(const Computed before, model->compute(ids));
    constexpr uint32_t kChanged = kTokens - 3; // within any window of the rows after it
    ids[kChanged] = (ids[kChanged] + 1) % static_cast<int32_t>(f.vocab_size);
    PB_TRY(const Computed after, model->compute(ids));
    if (distance(before.logits, after.logits, 0, kChanged) > kSame)
        return fail("another token at position " + std::to_string(kChanged) + " changes logits of positions before it");
    if (std::isinf(distance(before.logits, after.logits)))
        return fail("with another token at position " + std::to_string(kChanged) + " logits are not finite");
    for (uint32_t row = kChanged; row < kTokens; ++row)
        if (distance(before.logits, after.logits, row, row + 1) < kOther)
            return fail("another token at position " + std::to_string(kChanged) + " changes no logit of position " +
                        std::to_string(row));
    return {};
}

Outcome computes_in_pieces(const host::Component& c, const pb_model&, const pb_model_facts& f) {
    PB_TRY(const auto model, ModelCase::make(c, f));
    if (model->has_states()) return Outcome::skip("it is recurrent");
    if (f.layer_count == 0) return Outcome::skip("it has no layers");
    const std::vector<int32_t> ids = draw_ids(f.vocab_size);
    PB_TRY(const Computed whole, model->compute(ids));
    const std::vector<uint32_t> pieces = {7, 1, 1, kTokens - 9};
    PB_TRY(const Computed split, model->compute(ids, pieces));
    if (distance(whole.logits, split.logits) > kSame)
        return fail("a prompt in chunks of 7, 1, 1 and " + std::to_string(kTokens - 9) +
                    " tokens has other logits than in one");
    if (distance(whole.hidden, split.hidden) > kSame)
        return fail("a prompt in chunks has other hidden states than in one");
    return {};
}

// With all output projections at zero a layer adds nothing: the token itself is left, and no other one.
Outcome keeps_the_residual(const host::Component& c, const pb_model&, const pb_model_facts& f) {
    PB_TRY(const auto model, ModelCase::make(c, f));
    if (model->is_head()) return Outcome::skip("it is a head: it goes on from another model's states");
    bool any = false;
    for (size_t i = 0; i < model->weights().count(); ++i) {
        if (!is_output_projection(*model, i)) continue;
        std::ranges::fill(model->weights().at(i).values, 0.0f);
        std::ranges::fill(model->weights().at(i).bias, 0.0f);
        any = true;
    }
    if (!any) return Outcome::skip("no weight of it is sharded by its columns");
    std::vector<int32_t> ids = draw_ids(f.vocab_size);
    PB_TRY(const Computed before, model->compute(ids));
    constexpr uint32_t kChanged = 5;
    for (size_t i = size_t{kChanged} * f.vocab_size; i < before.logits.size(); ++i)
        if (!std::isfinite(before.logits[i])) return fail("with all output projections 0, logits are not finite");
    ids[kChanged] = (ids[kChanged] + 1) % static_cast<int32_t>(f.vocab_size);
    PB_TRY(const Computed after, model->compute(ids));
    if (distance(before.logits, after.logits, kChanged, kChanged + 1) < kOther)
        return fail("with all output projections 0, logits do not depend on the row's own token: "
                    "is the residual added?");
    if (distance(before.logits, after.logits, kChanged + 1) > kSame)
        return fail("with all output projections 0, logits depend on an earlier token: "
                    "is one of them not sharded by its columns?");
    return {};
}

Outcome uses_each_weight(const host::Component& c, const pb_model&, const pb_model_facts& f) {
    PB_TRY(const auto model, ModelCase::make(c, f));
    const std::vector<int32_t> ids = draw_ids(f.vocab_size);
    PB_TRY(const Computed before, model->compute(ids));
    Noise noise(11);
    const auto changes = [&](std::vector<float>& values) -> Result<bool> {
        const std::vector<float> kept = values;
        for (float& x : values) x = x * noise.real(0.5f, 1.5f) + noise.real(-0.1f, 0.1f);
        PB_TRY(const Computed after, model->compute(ids));
        values = kept;
        double max_apart = 0;
        for (size_t i = 0; i < before.logits.size(); ++i)
            max_apart = std::max(max_apart, apart(before.logits[i], after.logits[i]));
        return max_apart > 1e-5;
    };
    bool has_experts = false, uses_experts = false;
    for (size_t i = 0; i < model->weights().count(); ++i) {
        const pb_weight_spec& s = model->weights().spec(i);
        const bool of_attention_alone = s.part_count == 0 && s.of_target == PB_TARGET_NONE && model->has_states();
        if (s.tied_to > 0 || of_attention_alone) continue;
        PB_TRY(const bool by_values, changes(model->weights().at(i).values));
        const bool of_expert = s.share > 0 && s.share < 1; // one that no token chooses changes nothing
        has_experts |= of_expert;
        uses_experts |= of_expert && by_values;
        if (of_expert) continue;
        if (!by_values) return fail("other values in " + name_of(*model, i) + " change no logit");
        if (model->weights().at(i).bias.empty()) continue;
        PB_TRY(const bool by_bias, changes(model->weights().at(i).bias));
        if (!by_bias) return fail("another bias of " + name_of(*model, i) + " changes no logit");
    }
    if (has_experts && !uses_experts) return fail("other values in an expert's weights change no logit");
    return {};
}

Outcome gives_hidden_states(const host::Component& c, const pb_model&, const pb_model_facts& f) {
    if (!(f.flags & PB_MODEL_GIVES_HIDDEN)) return Outcome::skip("it does not say that it gives them");
    PB_TRY(const auto model, ModelCase::make(c, f));
    PB_TRY(const Computed got, model->compute(draw_ids(f.vocab_size)));
    const pb_weight& lm_head = model->weights().at(f.lm_head);
    std::vector<float> expected(got.logits.size());
    kernels::reference::linear(expected.data(), got.hidden.data(), lm_head.values.data(),
                               lm_head.bias.empty() ? nullptr : lm_head.bias.data(), kTokens, lm_head.rows,
                               lm_head.cols);
    for (const float x : got.hidden)
        if (!std::isfinite(x)) return fail("hidden states are not written, or not finite");
    if (distance(got.logits, expected) > kSame) return fail("its logits are not the lm head's of its hidden states");
    return {};
}

}  // namespace patchbay::conformance
