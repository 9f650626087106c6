// The sequences of a propose(), and which of them the pass under way is asked for. Part of DraftModel.
#pragma once
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/request/sequence.hpp"
#include "host/runner_rules.hpp"

namespace patchbay::engine {

class DraftTurns {
  public:
    struct Row { // a sequence that is drafted for
        Sequence* sequence;
        uint32_t max_drafts;
    };

    // all: that the target has computed, in their order; rows: some of them.
    void begin(std::span<const Row> rows, std::vector<Sequence*> all) {
        all_ = std::move(all);
        turns_.clear();
        for (const Row& r : rows) turns_[r.sequence->id] = {r.sequence, r.max_drafts, std::nullopt};
    }
    const std::vector<Sequence*>& all() const { return all_; }
    std::optional<uint32_t> max_drafts(RequestId id) const { // nothing: it is not drafted for
        const auto at = turns_.find(id);
        return at == turns_.end() ? std::nullopt : std::optional(at->second.max_drafts);
    }

    // A pass is asked for these rows, which were checked. Their drafts are put after the sequences' own tokens, where
    // there is room for them: no pointer moves.
    void ask(const pb_runner_batch& b) {
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
    void ask_nothing() {
        for (auto& [id, turn] : turns_) turn.asked.reset();
    }
    void drop_drafts() { // the pass is over
        for (auto& [id, turn] : turns_) turn.sequence->drop_drafts();
    }
    std::optional<uint32_t> asked(const Sequence& s) const { // its row of the pass; nothing: it has none
        const auto at = turns_.find(s.id);
        return at == turns_.end() ? std::nullopt : at->second.asked;
    }

  private:
    struct Turn {
        Sequence* sequence;
        uint32_t max_drafts;
        std::optional<uint32_t> asked;
    };

    std::vector<Sequence*> all_;
    std::unordered_map<RequestId, Turn> turns_;
};

}  // namespace patchbay::engine
