#include "conformance/model_case.hpp"

#include <cmath>
#include <numeric>

#include "conformance/lent_memory.hpp"
#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint64_t kSeed = 2026;

uint64_t use(pb_weight_role role) { return uint64_t{1} << role; }

kernels::AttentionShape shape_of(const pb_kv_spec& s, uint32_t block_size) {
    return {.heads = int32_t(s.heads),
            .kv_heads = int32_t(s.kv_heads),
            .head_dim = int32_t(s.head_dim),
            .block_size = int32_t(block_size),
            .window = s.sliding_window,
            .scale = s.scale,
            .soft_cap = s.soft_cap,
            .kv_dtype = PB_F32,
            .slopes = s.slopes};
}

}  // namespace

Result<std::unique_ptr<ModelCase>> ModelCase::make(const host::Component& component, const pb_model_facts& facts) {
    std::unique_ptr<ModelCase> out(new ModelCase(component, facts));
    if (const auto* const head = component.extension<pb_draft_head>()) {
        out->head_ = true;
        if (facts.layer_count == 0) out->draft_steps_ = head->max_draft_depth(component.self());
    }
    PB_CHECK(out->draw_weights());
    PB_CHECK(out->lay_out_kv());
    return out;
}

Result<> ModelCase::draw_weights() {
    const auto& table = *static_cast<const pb_model*>(component_.type().vtable);
    const uint32_t count = table.weight_count(component_.self());
    Noise noise(kSeed);
    for (uint32_t i = 0; i < count; ++i) {
        PB_TRY(const pb_weight_spec s, (filled<&pb_model::weight, pb_weight_spec>(component_, i)));
        specs_.push_back(s);
        if (s.tied_to > 0) {
            weights_.push_back(weights_[s.tied_to - 1]);
            weights_.back()->uses |= s.uses;
            continue;
        }
        auto w = std::make_shared<pb_weight>();
        w->uses = s.uses;
        w->cols = s.cols;
        w->rows = s.role == PB_WEIGHT_VECTOR ? 1 : 0;
        bool biased = false;
        for (uint32_t p = 0; p < s.part_count; ++p) {
            if (s.role != PB_WEIGHT_VECTOR) w->rows += s.parts[p].rows;
            biased |= s.parts[p].bias[0] != 0;
        }
        if (s.of_target != PB_TARGET_NONE) { // its vocabulary and its width are those of the head
            w->rows = facts_.vocab_size;
            w->cols = facts_.hidden_size;
            w->uses |= use(s.of_target == PB_TARGET_EMBEDDING ? PB_WEIGHT_EMBEDDING : PB_WEIGHT_LINEAR);
        }
        const auto n = static_cast<size_t>(w->rows * w->cols);
        if (s.part_count == 0 && s.of_target == PB_TARGET_NONE) {
            w->values.resize(n);
            PB_CHECK(component_.check(table.fill(component_.self(), i, w->values.data()), "fill"));
        } else if (s.role == PB_WEIGHT_VECTOR) {
            w->values = noise.reals(n, 0.7f, 1.3f);
        } else { // so that what it multiplies keeps its size
            const float bound = s.role == PB_WEIGHT_EMBEDDING ? 1 : std::sqrt(3 / static_cast<float>(w->cols));
            w->values = noise.reals(n, -bound, bound);
        }
        if (biased) w->bias = noise.reals(static_cast<size_t>(w->rows), -0.5f, 0.5f);
        weights_.push_back(std::move(w));
    }
    for (const auto& w : weights_) handles_.push_back(w.get());
    return {};
}

Result<> ModelCase::lay_out_kv() {
    for (uint32_t layer = 0; layer < facts_.layer_count; ++layer) {
        PB_TRY(const pb_kv_spec s, (filled<&pb_model::kv_spec, pb_kv_spec>(component_, layer)));
        if (s.sinks > weights_.size() || (s.sinks && weights_[s.sinks - 1]->values.size() != s.heads))
            return fail("layer " + std::to_string(layer) + " has no sinks of its heads in the weight that it names");
        kv_.push_back(s);
        const uint64_t bytes =
            s.kind == PB_KV_RECURRENT ? 0 : kernels::reference::page_bytes(shape_of(s, kBlock)) * (kMaxTokens / kBlock);
        pages_.emplace_back(bytes / sizeof(float), NAN);
    }
    features_ = Noise(kSeed + 1).reals(size_t{kMaxTokens} * facts_.hidden_size);
    return {};
}

bool ModelCase::has_states() const {
    return std::ranges::any_of(kv_, [](const pb_kv_spec& s) { return s.kind == PB_KV_RECURRENT; });
}

Result<ModelCase::Computed> ModelCase::compute(std::span<const int32_t> ids, std::span<const uint32_t> pieces) {
    Computed out;
    for (auto& page : pages_) std::ranges::fill(page, NAN);
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
    f.weights = handles_.data();
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
                  const pb_tensor* v) { static_cast<ModelCase*>(ctx)->attend(layer, *out, *q, k, v); };
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
        f.features = tensor(features_.data(), PB_F32, {kMaxTokens, facts_.hidden_size});
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

void ModelCase::attend(uint32_t layer, const pb_tensor& out, const pb_tensor& q, const pb_tensor* k,
                       const pb_tensor* v) {
    if (layer >= kv_.size() || kv_[layer].kind == PB_KV_RECURRENT)
        return device_.set_fault("attend: layer " + std::to_string(layer) + " has no attention");
    const pb_kv_spec& s = kv_[layer];
    const int64_t tokens = starts_[1];
    const auto fits = [&](const pb_tensor& t, uint32_t heads) {
        return t.rank == 3 && t.shape[0] == tokens && t.shape[1] == heads && t.shape[2] == s.head_dim;
    };
    if (!fits(q, s.heads) || !fits(out, s.heads) || (k && (!fits(*k, s.kv_heads) || !v || !fits(*v, s.kv_heads))))
        return device_.set_fault("attend: layer " + std::to_string(layer) + ": q is " +
                                 shape_text(q.dtype, q.shape, q.rank) + ", kv_spec says " + std::to_string(s.heads) +
                                 " heads over " + std::to_string(s.kv_heads) + " of " + std::to_string(s.head_dim));
    if (!k == (s.kv_source_layer == 0))
        return device_.set_fault("attend: layer " + std::to_string(layer) +
                                 (k ? " has keys, and shares another layer's" : " has no keys"));
    const uint32_t from = k ? layer : s.kv_source_layer - 1;
    const kernels::AttentionShape shape = shape_of(s, kBlock);
    const std::vector<int32_t> lens = {positions_.back() + 1}, block_starts = {0, int32_t{kMaxTokens / kBlock}};
    std::vector<int32_t> blocks(kMaxTokens / kBlock);
    std::iota(blocks.begin(), blocks.end(), 0);
    const std::vector<int64_t> slots(positions_.begin(), positions_.end());
    const kernels::AttentionBatch batch{.seq_count = 1,
                                        .token_count = static_cast<int32_t>(tokens),
                                        .query_starts = starts_.data(),
                                        .seq_lens = lens.data(),
                                        .block_starts = block_starts.data(),
                                        .blocks = blocks.data(),
                                        .slot_mapping = slots.data(),
                                        .positions = positions_.data()};
    const kernels::KvPages pages{reinterpret_cast<uint8_t*>(pages_[from].data()),
                                 kernels::reference::page_bytes(shape),
                                 s.sinks ? weights_[s.sinks - 1]->values.data() : nullptr};
    if (k) kernels::reference::append_kv(shape, batch, pages, *k, *v);
    kernels::reference::attend(shape, batch, pages, out, q, 0, 0, static_cast<int32_t>(tokens));
}

}  // namespace patchbay::conformance
