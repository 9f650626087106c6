#include "engine/speculation/draft_turns.hpp"

#include <cassert>
#include <utility>

#include "engine/request/sequence.hpp"
#include "host/runner_rules.hpp"

namespace patchbay::engine {

void DraftTurns::begin(std::span<const Row> rows, std::vector<Sequence*> all) {
    all_ = std::move(all);
    turns_.clear();
    for (const Row& r : rows) turns_[r.sequence->id] = {r.sequence, r.max_drafts, std::nullopt};
}

std::optional<uint32_t> DraftTurns::max_drafts(RequestId id) const {
    const auto at = turns_.find(id);
    return at == turns_.end() ? std::nullopt : std::optional(at->second.max_drafts);
}

void DraftTurns::ask(const pb_runner_batch& b) {
    ask_nothing();
    for (uint32_t i = 0; i < b.row_count; ++i) {
        const pb_runner_row& row = host::row_of(b, i);
        Turn& turn = turns_.at(row.id);
        Sequence& s = *turn.sequence;
        turn.asked = i;
        s.drop_drafts();
        assert(s.tokens.capacity() >= s.tokens.size() + row.draft_count);
        s.tokens.insert(s.tokens.end(), row.drafts, row.drafts + row.draft_count);
        s.drafts = row.draft_count;
    }
}

void DraftTurns::ask_nothing() {
    for (auto& [id, turn] : turns_) turn.asked.reset();
}

void DraftTurns::drop_drafts() {
    for (auto& [id, turn] : turns_) turn.sequence->drop_drafts();
}

std::optional<uint32_t> DraftTurns::asked(const Sequence& s) const {
    const auto at = turns_.find(s.id);
    return at == turns_.end() ? std::nullopt : at->second.asked;
}

}  // namespace patchbay::engine
