#include "engine/groups/beam_group.hpp"

#include <algorithm>

#include "engine/request/sequence.hpp"

namespace patchbay::engine {

uint32_t BeamGroup::shared_with_first(size_t beam) const {
    const Sequence& s = *slots[beam];
    const auto same = std::ranges::mismatch(slots[0]->tokens, s.tokens).in2 - s.tokens.begin();
    return std::min(static_cast<uint32_t>(same), s.confirmed() - 1);
}

uint32_t BeamGroup::needed_from() const {
    uint32_t out = UINT32_MAX;
    for (size_t i = 1; i < search.open().size(); ++i)
        if (slots[i]->kv.table.held == 0) out = std::min(out, shared_with_first(i));
    return out;
}

BeamGroup* find_group(const BeamGroups& groups, const Sequence& s) {
    if (groups.empty() || !s.is_beam()) return nullptr;
    const auto at = groups.find(s.group);
    return at == groups.end() ? nullptr : at->second.get();
}

}  // namespace patchbay::engine
