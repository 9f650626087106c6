#include "engine/sampling/prompt_logprobs.hpp"

#include <algorithm>

#include "config/engine_config.hpp"
#include "config/step_limits.hpp"
#include "engine/placement/placed.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"

namespace patchbay::engine {

void PromptLogprobs::add(Sequence& s, const pb_sampling_params& params) {
    records_.add(s.id, {params, 1, {}});
    if (s.prompt_count > 1) s.kv.reads_prefixes = false;
}

void PromptLogprobs::erase(const Sequence& s) { records_.erase(s.id); }

const pb_sampling_params* PromptLogprobs::params_of(const Sequence& s) const {
    const Record* const r = records_.find(s.id);
    return r ? &r->params : nullptr;
}

uint32_t PromptLogprobs::max_rows() const { return config::max_prompt_rows(settings_); }

uint32_t PromptLogprobs::rows(const Sequence& s, uint32_t begin, uint32_t end) const {
    const Record* const r = records_.find(s.id);
    if (!r || r->noted >= s.prompt_count) return 0;
    const uint32_t first = std::max(begin, r->noted - 1), last = std::min(end, s.prompt_count - 1);
    return last > first ? last - first : 0;
}

uint32_t PromptLogprobs::tokens_within(const Sequence& s, uint32_t begin, uint32_t tokens, uint32_t row_limit) const {
    if (rows(s, begin, begin + tokens) <= row_limit) return tokens;
    return std::max(begin, records_.find(s.id)->noted - 1) + row_limit - begin;
}

void PromptLogprobs::add_rows(const Sequence& s, uint32_t begin, uint32_t count, SampleRows& rows) {
    if (count == 0) return;
    Record& r = *records_.find(s.id);
    const size_t words = (vocab_size_ + 31) / 32;
    r.masks.assign(count * words, 0);
    for (uint32_t i = 0; i < count; ++i) {
        const TokenId token = s.tokens[begin + i + 1];
        uint32_t* const mask = r.masks.data() + i * words;
        mask[static_cast<size_t>(token) / 32] = 1u << (token % 32);
        rows.add({s.id, s.sampling.seed, begin + i + 1, &r.params, s.tokens.data(), s.tokens.data(), begin + i + 1, 0,
                  mask, nullptr},
                 false);
    }
}

void PromptLogprobs::start_over(Sequence& s) {
    Record* const r = records_.find(s.id);
    if (!r || s.outputs() > 0) return;
    r->noted = 1;
    s.output.delta.prompt_logprobs.clear();
    if (s.prompt_count > 1) s.kv.reads_prefixes = false;
}

// A sibling finds in the cache what the first one noted.
void PromptLogprobs::take(const Placed& item, const StepSamples& samples) {
    if (item.prompt_rows == 0) return;
    Sequence& s = *item.sequence;
    Record& r = *records_.find(s.id);
    for (uint32_t i = 0; i < item.prompt_rows; ++i)
        s.output.delta.prompt_logprobs.push_back(
            samples.logprobs_of(item.first_row - item.prompt_rows + i, *s.request->sampling.prompt_logprobs));
    r.noted += item.prompt_rows;
    if (r.noted >= s.prompt_count) s.kv.reads_prefixes = !s.request->sampling.skip_reading_prefix_cache;
}

}  // namespace patchbay::engine
