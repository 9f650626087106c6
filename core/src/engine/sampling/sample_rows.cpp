#include "engine/sampling/sample_rows.hpp"

#include <algorithm>

#include "engine/request/sequence.hpp"
#include "engine/sampling/token_rules.hpp"

namespace patchbay::engine {

pb_sample_row SampleRowBuilder::row(const Sequence& s, uint32_t after) const {
    const uint32_t made = s.outputs() + after;
    const auto there = static_cast<uint32_t>(s.tokens.size()) - s.prompt_count; // a token in flight is not
    const std::vector<float>* const surprisals = s.sampling.samples_by_surprisal() ? surprisals_.find(s.id) : nullptr;
    return {s.id,           s.sampling.seed,
            s.confirmed() + after,
            &s.sampling.params,      s.tokens.data(),
            s.tokens.data() + s.prompt_count,
            s.prompt_count, std::min(made, there),
            rules_.mask(s, made),
            surprisals ? surprisals->data() : nullptr};
}

}  // namespace patchbay::engine
