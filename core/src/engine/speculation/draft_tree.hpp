// Trees of drafts as the host verifies them: by their paths from the newest token on, each over pages of its own.
// Used by the engine between a propose() and the step that verifies what came of it. See decision 0039.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

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
    bool sound = true;            // else it was cut at an invalid parent
};

// `parents` as in pb_propose_batch, one for each draft. An invalid token ends the tree, like a chain.
DraftTree tree_of(std::span<const TokenId> drafts, std::span<const int32_t> parents, const TreeLimits&);

// Unless it is empty or a beginning of one that is there; those that are beginnings of it give way. At most
// `max_paths`.
void add_path(std::vector<DraftPath>&, DraftPath, size_t max_paths);

uint32_t common_length(std::span<const TokenId>, std::span<const TokenId>);

}  // namespace patchbay::engine
