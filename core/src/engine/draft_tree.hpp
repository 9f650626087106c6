// Trees of drafts as the host verifies them: by their paths from the newest token on, each over pages of its own.
// Used by the engine between a propose() and the step that verifies what came of it. See decision 0039.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_cache.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::engine {

using text::TokenId;

using DraftPath = std::vector<TokenId>;

struct TreeLimits {
    uint32_t max_drafts = 0; // of a path
    uint32_t max_paths = 1;
    uint32_t vocab_size = 0;
};

struct DraftTree {
    std::vector<DraftPath> paths; // none a beginning of another, in the order of their last drafts
    bool sound = true;            // else it was cut at a parent that is none
};

// `parents` as in pb_propose_batch, one for each draft. A token that is none ends the tree, like a chain.
DraftTree tree_of(std::span<const TokenId> drafts, std::span<const int32_t> parents, const TreeLimits&);

// Unless it is empty or a beginning of one that is there; those that are beginnings of it give way. At most `most`.
void add_path(std::vector<DraftPath>&, DraftPath, size_t most);

uint32_t common_length(std::span<const TokenId>, std::span<const TokenId>);

// A path beside the first one, in the step that verifies it. Its rows are those that no path before it has.
struct Branch {
    size_t item = 0;               // of the step: its sequence
    std::vector<TokenId> tokens{}; // of the sequence, and behind them the path's drafts
    uint32_t drafts = 0;
    uint32_t shared = 0;           // of them, those that begin a path before it, whose rows they use
    kv::BlockTable table{};
    uint32_t first_token = 0;      // in the batch: of the newest token, which is computed again
    uint32_t first_row = 0;        // of its rows, behind draft shared + 1
    std::vector<uint32_t> masks{}, word_masks{}; // by row, as of a sequence

    std::span<const TokenId> path() const { return std::span(tokens).last(drafts); }
    uint32_t rows() const { return drafts - shared; }
    uint32_t row_behind(uint32_t draft) const { return first_row + draft - shared - 1; } // from 1
};

}  // namespace patchbay::engine
