// The flat token batch of one step: what the model and attention plugins are shown. Arrays are host memory and keep
// their capacity from step to step.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.hpp"
#include "patchbay/abi/attention.h"

namespace patchbay::runner {

struct BatchRow { // one sequence's share of the step
    std::span<const int32_t> tokens;         // ids to compute, in order
    uint32_t computed;                       // tokens before them whose KV is there
    uint32_t logit_rows;                     // of the last so many tokens the logits are wanted
    std::span<const kv::BlockId> blocks;     // covers computed + tokens
};

class Batch {
  public:
    void clear();
    void add(const BatchRow&, uint32_t block_size);
    void finish(); // lays the block tables out in rows of equal length

    uint32_t tokens() const { return static_cast<uint32_t>(ids_.size()); }
    uint32_t sequences() const { return static_cast<uint32_t>(seq_lens_.size()); }
    std::span<const int32_t> ids() const { return ids_; }
    std::span<const int32_t> positions() const { return positions_; }
    std::span<const int32_t> logit_rows() const { return logit_rows_; }
    pb_attention_batch attention() const; // valid until the batch changes

  private:
    std::vector<int32_t> ids_, positions_, query_starts_, seq_lens_, logit_rows_, tables_;
    std::vector<int64_t> slots_;
    std::vector<std::span<const kv::BlockId>> blocks_;
    uint32_t max_blocks_ = 0, max_query_ = 0, max_seq_ = 0;
};

}  // namespace patchbay::runner
