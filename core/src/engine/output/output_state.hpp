// What becomes of one sequence's tokens on their way out: text, sums over them, and the delta of the step under way.
#pragma once
#include <memory>

#include "engine/output/stop_matcher.hpp"
#include "engine/request/output.hpp"
#include "text/detokenizer.hpp"

namespace patchbay::engine {

struct OutputSums { // over the output's tokens
    double logprob = 0;
    LogitsStatistics logits; // of so many of them:
    uint32_t logits_rows = 0;
};

struct OutputState {
    std::unique_ptr<text::Detokenizer> detokenizer; // null: ids only
    StopMatcher stops{{}, StopMatcher::Keep::kBefore};
    OutputSums sums, published; // published: of the tokens that were handed out
    RequestOutput delta{};
};

}  // namespace patchbay::engine
