// Rows for a sampler's checks, and its answer with guards around the buffers.
#pragma once
#include <deque>
#include <vector>

#include "conformance/check.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace patchbay::conformance {

inline constexpr uint32_t kVocab = 203; // no multiple of 32: the mask's last word is not full
inline constexpr uint32_t kTop = 5;     // room in the top lists

struct RowCase { // one sequence that wants a token
    std::vector<float> logits;
    pb_sampling_params params = plain_params();
    std::vector<int32_t> prompt, output, breakers;
    std::vector<pb_logit_bias> biases;
    std::vector<float> surprisal; // one an output token
    std::vector<uint32_t> allowed; // empty: all
    uint64_t seed = 0, position = 0;

    bool may(uint32_t t) const { return allowed.empty() || (allowed[t / 32] >> (t % 32) & 1u); }
    void allow_none() { allowed.assign((kVocab + 31) / 32, 0); }
    void allow(uint32_t t) { allowed[t / 32] |= 1u << (t % 32); }
};

std::deque<RowCase> random_rows(uint64_t seed, uint32_t count); // sane ones, of every kind of request
// Of few likely tokens, at several temperatures above 0 and with the usual truncations: to draw from often.
std::deque<RowCase> drawn_rows();
std::deque<RowCase> strange_rows(); // that no sane model gives: NaN, all −inf, +inf, nothing allowed that is finite
std::vector<const RowCase*> all(const std::deque<RowCase>&);
// "row 14 (vocabulary 203, temperature 0.7, top_k 5, seed 9, position 31, 12 tokens allowed)": what is not off.
std::string name_of(size_t i, const RowCase&);

struct Sampled {
    std::vector<int32_t> tokens, top_tokens;             // (rows), (rows, kTop)
    std::vector<float> logprobs, top_logprobs, logits;  // (rows), (rows, kTop), (rows, kVocab) as the sampler left them
    std::vector<float> surprisal;                        // (rows), NaN where it gave none
    std::vector<int32_t> faults; // by row: 1 where there is nothing to choose from
    bool within_bounds = true;
};

enum class Call { kSample, kProcess };
// A sampler on a device is given rows there; logits come back as they are after it. Rarer stages that it does not
// accept are taken off the rows. What is lent for the call lies in `memory`; null: in the subject's. extra: bytes by
// which the host's rows are longer than the plugin's, and in the host's memory those of logits than the vocabulary.
Result<Sampled> sample(Subject&, const host::Component&, const std::vector<const RowCase*>&, Call = Call::kSample,
                       LentMemory* memory = nullptr, uint32_t extra = 0);

}  // namespace patchbay::conformance
