#include "kv/cached_pages.hpp"

namespace patchbay::kv {

void CachedPages::note_named(BlockId b, BlockPlace place) {
    if (!details_.empty()) details_[static_cast<size_t>(b)] = {.place = place};
}

void CachedPages::note_hit(BlockId b) {
    if (!details_.empty()) details_[static_cast<size_t>(b)].hits += 1;
}

CachedPage CachedPages::page(BlockId b) const {
    const Details& details = details_[static_cast<size_t>(b)];
    return {.page = b,
            .parent = identities_.parent_of(b),
            .block = identities_.key_of(b)->low,
            .released_ns = details.released_ns,
            .position = details.place.position,
            .group = details.place.group,
            .hits = details.hits};
}

std::vector<CachedPage> CachedPages::all() const {
    std::vector<CachedPage> out;
    if (details_.empty()) return out;
    for (const BlockId b : free_.all())
        if (identities_.has(b)) out.push_back(page(b));
    return out;
}

bool CachedPages::walk(size_t max_blocks, std::vector<CachedPage>& out) {
    std::vector<BlockId> blocks;
    const bool more = free_.walk(max_blocks, blocks);
    for (const BlockId b : blocks)
        if (identities_.has(b)) out.push_back(page(b));
    return more;
}

}  // namespace patchbay::kv
