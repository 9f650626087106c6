// What becomes of one sequence's tokens on their way out: text, sums over them, and the delta of the step under way.
#pragma once
#include <cstdint>
#include <memory>

#include "engine/request/output.hpp"

namespace patchbay::engine {

struct OutputText;

struct OutputSums { // over the output's tokens
    double logprob = 0;
    LogitsStatistics logits; // of so many of them:
    uint32_t logits_rows = 0;
};

struct OutputState {
    std::unique_ptr<OutputText> text; // null: ids only
    OutputSums sums, published; // published: of the tokens that were handed out
    RequestOutput delta{};

    OutputState();
    OutputState(OutputState&&) noexcept;
    OutputState& operator=(OutputState&&) noexcept;
    ~OutputState();
};

}  // namespace patchbay::engine
