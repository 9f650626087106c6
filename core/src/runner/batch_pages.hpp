// Where the KV and the states of a batch's sequences lie: block tables and slots of every KV group. Part of Batch.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_table.hpp"

namespace patchbay::runner {

struct BatchForm { // of the block tables that its rows bring
    uint32_t block_size = 16;
    uint32_t token_groups = 1, state_groups = 0; // KV groups; those of states are the last ones
};

class BatchPages {
  public:
    void clear(const BatchForm&);
    // The next sequence: the tokens [computed, computed + count) are computed.
    void add(const kv::BlockTable&, uint32_t computed, uint32_t count);
    void pad(uint32_t tokens, uint32_t sequences); // so many more sequences of one token, which write nothing; and up
                                                   // to so many sequences in all
    void finish(); // puts the block tables of all groups into one list

    std::span<const int32_t> blocks() const { return blocks_; } // of all groups, one after the other
    // Where in blocks() each sequence's begin, once it is finished: (sequences + 1).
    std::span<const int32_t> block_starts(uint32_t group) const { return block_starts_[group]; }
    std::span<const int64_t> slots(uint32_t group) const { return slots_[group]; }  // by token; -1: it writes none
    // By sequence: its page in a group of states.
    std::span<const int32_t> state_pages(uint32_t group) const { return states_[group - form_.token_groups]; }

  private:
    BatchForm form_;
    std::vector<std::vector<int32_t>> tables_, states_; // by group: pages of all sequences; (sequences)
    std::vector<std::vector<int32_t>> block_starts_;
    std::vector<std::vector<int64_t>> slots_;
    std::vector<int32_t> table_lengths_, blocks_; // by sequence
};

}  // namespace patchbay::runner
