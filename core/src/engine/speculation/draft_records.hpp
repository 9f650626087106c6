// What is known of a sequence's drafts besides their tokens, which stand at the end of the sequence's own.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/sequence_records.hpp"
#include "engine/speculation/draft_tree.hpp"

namespace patchbay::engine {

struct DraftRecord {
    std::vector<DraftPath> branches; // further paths, the more likely first
    std::vector<uint8_t> drawn;      // by rejection, by draft: whether it was drawn at random,
    std::vector<float> probs;        // and (drafts, vocab) from what
};

class DraftRecords { // by a sequence's id
  public:
    DraftRecord& of(RequestId id) { return records_.of(id); }
    // Of a sequence that has so many drafts now: without drafts there are none, whatever the record says.
    std::span<const DraftPath> branches(RequestId id, uint32_t drafts) const {
        const DraftRecord* const r = drafts > 0 ? records_.find(id) : nullptr;
        return r ? std::span<const DraftPath>(r->branches) : std::span<const DraftPath>();
    }
    void erase(RequestId id) { records_.erase(id); }

  private:
    SequenceRecords<DraftRecord> records_;
};

}  // namespace patchbay::engine
