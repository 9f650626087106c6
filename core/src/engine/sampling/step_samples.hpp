// What the rows of one step became.
#pragma once
#include <vector>

#include "engine/request/output.hpp"
#include "runner/sampled_rows.hpp"

namespace patchbay::engine {

struct StepSamples { // by row
    std::vector<TokenId> tokens; // −1: none was sampled
    std::vector<float> logprobs, surprisals; // surprisals: empty where no sampler gives them
    std::vector<int32_t> faults;             // 1: the row had nothing to choose from
    std::vector<TokenId> top_tokens;         // (rows, max_logprobs)
    std::vector<float> top_logprobs;         // likewise
    uint32_t max_logprobs = 0;
    std::vector<LogitsStatistics> statistics; // where a request asks for them, else empty

    void clear(size_t rows, uint32_t max_logprobs_of_rows) {
        max_logprobs = max_logprobs_of_rows;
        tokens.assign(rows, -1);
        logprobs.assign(rows, 0);
        surprisals.assign(rows, 0);
        faults.assign(rows, 0);
        top_tokens.assign(rows * max_logprobs, -1);
        top_logprobs.assign(rows * max_logprobs, 0);
    }
    void take(const runner::SampledRows& rows) {
        tokens.assign(rows.tokens.begin(), rows.tokens.end());
        logprobs.assign(rows.logprobs.begin(), rows.logprobs.end());
        top_tokens.assign(rows.top_tokens.begin(), rows.top_tokens.end());
        top_logprobs.assign(rows.top_logprobs.begin(), rows.top_logprobs.end());
        max_logprobs = rows.max_logprobs;
        surprisals.clear();
        statistics.clear();
    }
    TokenLogprobs logprobs_of(size_t row, int32_t top) const { // of what was sampled, and of the `top` highest
        TokenLogprobs out{logprobs[row], {}};
        for (int32_t i = 0; i < top; ++i) {
            const size_t at = row * max_logprobs + static_cast<size_t>(i);
            if (top_tokens[at] >= 0) out.top.emplace_back(top_tokens[at], top_logprobs[at]);
        }
        return out;
    }
};

}  // namespace patchbay::engine
