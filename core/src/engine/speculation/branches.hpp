// Verification of trees of drafts: each path of a sequence but the first is computed over a block table forked from the
// sequence's, so that no kernel and no other sequence sees a difference. The path that agrees with what is sampled
// leaves its table to the sequence. See decision 0039.
#pragma once
#include <span>
#include <vector>

#include "engine/placement/placed.hpp"
#include "engine/sampling/row_constraint.hpp"
#include "engine/speculation/draft_records.hpp"
#include "kv/block_table.hpp"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class DraftKvTable;
struct StepContext;
struct StepSamples;

// Its rows are those that no path before it has.
struct Branch {
    size_t item = 0;               // of the step: its sequence
    std::vector<TokenId> tokens{}; // of the sequence, and after them the path's drafts
    uint32_t drafts = 0;
    uint32_t shared = 0;           // of them, those that begin a path before it, whose rows they use
    kv::BlockTable table{};
    uint32_t first_token = 0;      // in the batch: of the newest token, which is computed again
    uint32_t first_row = 0;        // of its rows, after draft shared + 1
    std::vector<MaskWords> masks{}; // of its rows, by constraint

    std::span<const TokenId> path() const { return std::span(tokens).last(drafts); }
    uint32_t rows() const { return drafts - shared; }
    uint32_t row_after(uint32_t draft) const { return first_row + draft - shared - 1; } // from 1
};

class Branches {
  public:
    Branches(const config::EngineSettings&, kv::KvCache&, const DraftRecords&, DraftKvTable&, StepContext&);

    // As far as budget, seats and pages go that the step leaves free: the second paths of all sequences before the
    // third.
    void fork(std::span<const Placed> step);
    std::vector<Branch>& all() { return branches_; } // of the step
    const std::vector<Branch>& all() const { return branches_; }

    struct Followed {
        std::vector<uint32_t> rows; // of the tokens that the sequence takes: accepted drafts, and one more
        Branch* winner = nullptr;   // whose KV they are; null: the first path's
    };
    const Followed& follow(std::span<const Placed> step, size_t item, const StepSamples&); // until the next one
    void take_over(Sequence&, Branch&); // its KV becomes the sequence's
    void drop();

  private:
    bool fork(std::span<const Placed> step, size_t item, const DraftPath&, uint32_t& tokens_left);

    const config::EngineSettings& settings_;
    kv::KvCache& kv_;
    const DraftRecords& drafts_;
    DraftKvTable& draft_kv_;
    StepContext& context_;
    std::vector<Branch> branches_;
    Followed followed_;
};

}  // namespace patchbay::engine
