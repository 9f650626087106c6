// What a step computes of each sequence: the plan, as far as there was room for it.
#pragma once
#include <cstdint>

namespace patchbay::engine {

struct Sequence;

struct Placed {
    Sequence* sequence;
    uint32_t tokens;          // that are computed
    uint32_t confirmed;       // before the step
    uint32_t rows;            // logit rows: 0 while the prompt is unfinished, and of an embedding; else 1 + drafts
    uint32_t prompt_rows = 0; // before them, for prompt_logprobs
    uint32_t first_row = 0;   // of the rows, in the batch
    uint32_t placeholders = 0; // in flight: tokens that the next plan may build on
};

}  // namespace patchbay::engine
