#include "engine/speculation/draft_kv.hpp"

#include <algorithm>
#include <utility>

#include "engine/request/sequence.hpp"

namespace patchbay::engine {

DraftKv& DraftKvTable::of(const Sequence& s) { return records_.of(s.id); }

void DraftKvTable::erase(const Sequence& s) { records_.erase(s.id); }

void DraftKvTable::admitted(const Sequence& s) {
    if (kept_) of(s) = {.computed = s.computed, .ahead = {}, .hidden = {}, .made = {}};
}

void DraftKvTable::swapped_out(const Sequence& s) {
    if (!kept_) return;
    of(s).computed = std::min(of(s).computed, s.computed);
    of(s).ahead.clear();
}

void DraftKvTable::forked(const Sequence& s, const Sequence& from) {
    if (kept_) of(s) = continued(from, s.computed, false);
}

DraftKv DraftKvTable::continued(const Sequence& from, uint32_t computed) {
    return kept_ ? continued(from, computed, of(from).lost) : DraftKv{};
}

void DraftKvTable::set(const Sequence& s, DraftKv record) {
    if (kept_) of(s) = std::move(record);
}

DraftKv DraftKvTable::continued(const Sequence& from, uint32_t computed, bool lost) {
    const DraftKv& known = of(from);
    return {.computed = std::min(known.computed, computed), .ahead = {}, .lost = lost, .hidden = known.hidden,
            .made = {}};
}

}  // namespace patchbay::engine
