// What is known of a sequence's drafts besides their tokens, which stand at the end of the sequence's own.
#pragma once
#include <span>
#include <vector>

#include "engine/request/sequence.hpp"
#include "engine/request/sequence_records.hpp"
#include "engine/speculation/draft_tree.hpp"

namespace patchbay::engine {

struct DraftRecord {
    std::vector<DraftPath> branches; // further paths, the more likely first
    std::vector<uint8_t> drawn;      // by rejection, by draft: whether it was drawn at random,
    std::vector<float> probs;        // and (drafts, vocab) from what
};

class DraftRecords {
  public:
    DraftRecord& of(const Sequence& s) { return records_.of(s.id); }
    std::span<const DraftPath> branches(const Sequence& s) const {
        const DraftRecord* const r = s.drafts > 0 ? records_.find(s.id) : nullptr;
        return r ? std::span<const DraftPath>(r->branches) : std::span<const DraftPath>();
    }
    void erase(const Sequence& s) { records_.erase(s.id); }

  private:
    SequenceRecords<DraftRecord> records_;
};

}  // namespace patchbay::engine
