// The flat token batch of one step: what the model and attention plugins are shown. Arrays are host memory and keep
// their capacity from step to step.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_cache.hpp"
#include "patchbay/abi/attention.h"

namespace patchbay::runner {

struct BatchForm { // of the block tables that its rows bring
    uint32_t block_size = 16;
    uint32_t token_groups = 1, state_groups = 0; // KV groups; those of states are the last ones
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

class Batch {
  public:
    void clear(const BatchForm&);
    void add(const BatchRow&);
    void copy(const kv::PageCopy& page) { copies_.push_back(page); } // before anything of the step is computed
    // Hidden states are wanted of tokens that are in it.
    void want_hidden(const TokenRange& tokens) { hidden_.push_back(tokens); }
    void finish(); // puts the block tables of all groups into one list
    // Fills up a finished batch, to no fewer sequences than tokens: sequences of one token that write no KV and keep no
    // state, then some without a token; logit rows of no matter.
    void pad(uint32_t tokens, uint32_t sequences, uint32_t logit_rows);

    const BatchForm& form() const { return form_; }
    uint32_t tokens() const { return static_cast<uint32_t>(ids_.size()); }
    uint32_t sequences() const { return static_cast<uint32_t>(seq_lens_.size()); }
    std::span<const kv::PageCopy> copies() const { return copies_; } // in order
    std::span<const int32_t> ids() const { return ids_; }
    std::span<const int32_t> positions() const { return positions_; }
    std::span<const int32_t> logit_rows() const { return logit_rows_; }
    pb_attention_batch attention(uint32_t group) const; // of tokens; valid until the batch changes
    uint32_t max_query_len() const { return max_query_; }
    std::span<const int32_t> seq_lens() const { return seq_lens_; }
    // Of all groups, one after the other: pb_attention_batch.blocks.
    std::span<const int32_t> blocks() const { return blocks_; }
    // By sequence: its page in a group of states, and whether this step computes its first tokens.
    std::span<const int32_t> state_pages(uint32_t group) const { return states_[group - form_.token_groups]; }
    std::span<const int32_t> is_first_chunk() const { return is_first_chunk_; }
    std::span<const int32_t> query_starts() const { return query_starts_; }
    std::span<const int32_t> features() const { return features_; }
    std::span<const TokenRange> hidden() const { return hidden_; } // in the order in which they were wanted

    // Of a head: as pb_forward.draft_step; and where the hidden states of its logit rows go in HiddenStates.
    uint32_t draft_step = 0, kept_row = 0;

  private:
    BatchForm form_;
    std::vector<int32_t> ids_, positions_, query_starts_, seq_lens_, logit_rows_, is_first_chunk_, features_;
    std::vector<std::vector<int32_t>> tables_, states_;  // by group: pages of all sequences; (sequences)
    std::vector<std::vector<int32_t>> block_starts_;     // by group: (sequences + 1), in blocks_ once it is finished
    std::vector<std::vector<int64_t>> slots_;            // by group: (tokens)
    std::vector<int32_t> table_lengths_, blocks_;        // by sequence
    std::vector<kv::PageCopy> copies_;
    std::vector<TokenRange> hidden_;
    uint32_t max_query_ = 0, max_seq_ = 0;
};

}  // namespace patchbay::runner
