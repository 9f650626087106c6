// What is known of a sequence's drafts besides their tokens, which stand at the end of the sequence's own.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/sequence_records.hpp"
#include "engine/speculation/draft_tree.hpp"

namespace patchbay::engine {

struct Sequence;

struct DraftRecord {
    std::vector<DraftPath> branches; // further paths, the more likely first
    std::vector<uint8_t> drawn;      // by rejection, by draft: whether it was drawn at random,
    std::vector<float> probs;        // and (drafts, vocab) from what
};

class DraftRecords {
  public:
    DraftRecord& of(const Sequence&);
    std::span<const DraftPath> branches(const Sequence& s) const { // of its drafts of now
        return records_.empty() ? std::span<const DraftPath>() : known_branches(s);
    }
    void erase(const Sequence&);

  private:
    std::span<const DraftPath> known_branches(const Sequence&) const;

    SequenceRecords<DraftRecord> records_;
};

}  // namespace patchbay::engine
