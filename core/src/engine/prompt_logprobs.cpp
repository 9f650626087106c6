// Log-probabilities of a prompt's tokens. A position of the prompt becomes a row like any other, which may sample the
// prompt's next token and nothing else: so every sampler, also one on a device, says what it thinks of that token.
#include <algorithm>

#include "engine/state.hpp"

namespace patchbay::engine {

// Each takes a row of the vocabulary, beside those of a full step.
uint32_t Engine::State::most_prompt_rows() const {
    constexpr uint32_t kAnyway = 64;
    return std::max(kAnyway, settings.max_num_seqs * (1 + settings.num_speculative_tokens));
}

// Of the chunk [begin, end), which may be a second time that a part of the prompt is computed.
uint32_t Engine::State::prompt_rows(const Sequence& s, uint32_t begin, uint32_t end) const {
    if (!s.notes_prompt()) return 0;
    const uint32_t first = std::max(begin, s.prompt_noted - 1), last = std::min(end, s.prompt_count - 1);
    return last > first ? last - first : 0;
}

void Engine::State::add_prompt_rows(Sequence& s, uint32_t begin, uint32_t count) {
    const size_t words = (facts.vocab_size + 31) / 32;
    s.prompt_masks.assign(count * words, 0);
    for (uint32_t i = 0; i < count; ++i) {
        const TokenId token = s.tokens[begin + i + 1];
        uint32_t* const mask = s.prompt_masks.data() + i * words;
        mask[static_cast<size_t>(token) / 32] = 1u << (token % 32);
        sample_rows.push_back({s.id, s.seed, begin + i + 1, &s.prompt_params, s.tokens.data(), s.tokens.data(),
                               begin + i + 1, 0, mask, nullptr});
    }
}

void Engine::State::take_prompt_rows(const Scheduled& item) {
    Sequence& s = *item.sequence;
    for (uint32_t i = 0; i < item.prompt_rows; ++i)
        s.delta.prompt_logprobs.push_back(
            logprobs_of(item.first_row - item.prompt_rows + i, *s.request.sampling.prompt_logprobs));
    s.prompt_noted += item.prompt_rows;
}

TokenLogprobs Engine::State::logprobs_of(size_t row, int32_t top) const {
    TokenLogprobs out{sampled_logprobs[row], {}};
    for (int32_t i = 0; i < top; ++i) {
        const size_t at = row * max_logprobs + static_cast<size_t>(i);
        if (top_tokens[at] >= 0) out.top.emplace_back(top_tokens[at], top_logprobs[at]);
    }
    return out;
}

}  // namespace patchbay::engine
