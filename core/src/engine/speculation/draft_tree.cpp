#include "engine/speculation/draft_tree.hpp"

#include <algorithm>

#include "engine/request/ids.hpp"

namespace patchbay::engine {

uint32_t common_length(std::span<const TokenId> a, std::span<const TokenId> b) {
    return static_cast<uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

void add_path(std::vector<DraftPath>& paths, DraftPath path, size_t max_paths) {
    if (path.empty()) return;
    for (const DraftPath& other : paths)
        if (common_length(other, path) == path.size()) return;
    const auto longer = [&](const DraftPath& other) { return common_length(other, path) == other.size(); };
    if (const auto begin = std::ranges::find_if(paths, longer); begin != paths.end()) *begin = std::move(path);
    else if (paths.size() < max_paths) paths.push_back(std::move(path));
}

DraftTree tree_of(std::span<const TokenId> drafts, std::span<const int32_t> parents, const TreeLimits& limits) {
    DraftTree out;
    std::vector<uint32_t> depth;    // of each draft, from 1
    std::vector<bool> followed;     // by one that is kept
    for (size_t k = 0; k < drafts.size(); ++k) {
        if (drafts[k] < 0 || static_cast<uint32_t>(drafts[k]) >= limits.vocab_size) break;
        const int32_t parent = parents[k];
        if (parent < -1 || parent >= static_cast<int32_t>(k)) {
            out.sound = false;
            break;
        }
        depth.push_back(parent < 0 ? 1 : depth[static_cast<size_t>(parent)] + 1);
        followed.push_back(false);
        if (parent >= 0 && depth[k] <= limits.max_drafts) followed[static_cast<size_t>(parent)] = true;
    }
    for (size_t k = 0; k < depth.size(); ++k) {
        if (followed[k] || depth[k] > limits.max_drafts) continue;
        DraftPath path(depth[k]);
        auto at = static_cast<int32_t>(k);
        for (auto token = path.rbegin(); token != path.rend(); ++token) {
            *token = drafts[static_cast<size_t>(at)];
            at = parents[static_cast<size_t>(at)];
        }
        add_path(out.paths, std::move(path), limits.max_paths);
    }
    return out;
}

}  // namespace patchbay::engine
