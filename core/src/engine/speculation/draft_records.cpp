#include "engine/speculation/draft_records.hpp"

#include "engine/request/sequence.hpp"

namespace patchbay::engine {

DraftRecord& DraftRecords::of(const Sequence& s) { return records_.of(s.id); }

std::span<const DraftPath> DraftRecords::known_branches(const Sequence& s) const {
    const DraftRecord* const r = s.drafts > 0 ? records_.find(s.id) : nullptr;
    return r ? std::span<const DraftPath>(r->branches) : std::span<const DraftPath>();
}

void DraftRecords::erase(const Sequence& s) { records_.erase(s.id); }

}  // namespace patchbay::engine
