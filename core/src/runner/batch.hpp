// The flat token batch of one step: what the model and attention plugins are shown. Arrays are host memory and keep
// their capacity from step to step.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kv/copy_queue.hpp"

struct pb_attention_batch;

namespace patchbay::kv {
struct BlockTable;
}

namespace patchbay::runner {

struct BatchForm { // of the block tables that its rows bring
    uint32_t block_size = 16;
    uint32_t token_groups = 1, state_groups = 0; // KV groups; those of states are the last ones
};

// Where the KV and the states of a batch's sequences lie: block tables and slots of every KV group.
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

struct BatchRow { // one sequence's share of the step
    std::span<const int32_t> tokens;         // ids to compute, in order
    uint32_t computed;                       // tokens before them whose KV is there
    uint32_t logit_rows;                     // of the last so many tokens the logits are wanted
    const kv::BlockTable& table;             // with room for computed + tokens
    std::span<const int32_t> features{};     // of a head: by token, the row of the hidden states that it goes on from
};

struct TokenRange { // tokens of a batch, one after another
    uint32_t first = 0, count = 0;
};

struct BatchArrays {
    std::vector<int32_t> ids, positions;               // by token
    std::vector<int32_t> features;                     // likewise, of a head: BatchRow::features
    std::vector<int32_t> query_starts;                 // where each sequence's tokens begin: (sequences + 1)
    std::vector<int32_t> seq_lens;                     // by sequence, with the tokens of this step
    std::vector<int32_t> is_first_chunk;               // by sequence: whether this step computes its first tokens
    std::vector<int32_t> logit_rows;                   // tokens whose logits are wanted
};

class Batch {
  public:
    void clear(const BatchForm&);
    void add(const BatchRow&);
    void copy(const kv::PageCopy& page) { copies_.push_back(page); } // before anything of the step is computed
    // Hidden states are wanted of tokens that are in it.
    void want_hidden(const TokenRange& tokens) { hidden_.push_back(tokens); }
    void finish() { pages_.finish(); }
    // Fills up a finished batch, to no fewer sequences than tokens: sequences of one token that write no KV and keep no
    // state, then some without a token; logit rows of no matter.
    void pad(uint32_t tokens, uint32_t sequences, uint32_t logit_rows);

    const BatchArrays& arrays() const { return arrays_; }
    const BatchPages& pages() const { return pages_; }
    uint32_t tokens() const { return static_cast<uint32_t>(arrays_.ids.size()); }
    uint32_t sequences() const { return static_cast<uint32_t>(arrays_.seq_lens.size()); }
    uint32_t max_query_len() const { return max_query_; }
    pb_attention_batch attention(uint32_t group) const; // of tokens; valid until the batch changes
    std::span<const kv::PageCopy> copies() const { return copies_; } // in order
    std::span<const TokenRange> hidden() const { return hidden_; } // in the order in which they were wanted

    // Of a head: as pb_forward.draft_step; and where the hidden states of its logit rows go in HiddenStates.
    uint32_t draft_step = 0, kept_row = 0;

  private:
    BatchArrays arrays_;
    BatchPages pages_;
    std::vector<kv::PageCopy> copies_;
    std::vector<TokenRange> hidden_;
    uint32_t max_query_ = 0, max_seq_ = 0;
};

}  // namespace patchbay::runner
