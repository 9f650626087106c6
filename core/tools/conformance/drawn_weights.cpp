#include "conformance/drawn_weights.hpp"

#include <cmath>
#include <utility>

#include "conformance/noise.hpp"

namespace patchbay::conformance {
namespace {

uint64_t use(pb_weight_role role) { return uint64_t{1} << role; }

}  // namespace

Result<> DrawnWeights::draw(const host::Component& component, const pb_model_facts& facts) {
    const auto& table = *static_cast<const pb_model*>(component.type().vtable);
    const uint32_t count = table.weight_count(component.self());
    Noise noise(seed_);
    for (uint32_t i = 0; i < count; ++i) {
        PB_TRY(const pb_weight_spec s, (filled<&pb_model::weight, pb_weight_spec>(component, i)));
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
            w->rows = facts.vocab_size;
            w->cols = facts.hidden_size;
            w->uses |= use(s.of_target == PB_TARGET_EMBEDDING ? PB_WEIGHT_EMBEDDING : PB_WEIGHT_LINEAR);
        }
        const auto n = static_cast<size_t>(w->rows * w->cols);
        if (s.part_count == 0 && s.of_target == PB_TARGET_NONE) {
            w->values.resize(n);
            PB_CHECK(component.check(table.fill(component.self(), i, w->values.data()), "fill"));
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

}  // namespace patchbay::conformance
