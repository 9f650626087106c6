// All that differs from pass to pass, where the device reads it. A graph finds it at the addresses that it was captured
// with, since what comes before each has the length of the bucket; only the last, pages of all sequences and groups,
// has any. Part of a ModelRunner's passes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runner/batch.hpp"
#include "runner/graph_cache.hpp"
#include "runner/pass_context.hpp"
#include "runner/step_inputs.hpp"

namespace patchbay::runner {

struct PlacedInputs { // tensors of a pass that no op made
    pb_tensor ids, positions, logit_rows;
    pb_tensor features; // of a head: rows of what it goes on from
    uint32_t draft_step;
};

class PassInputs {
  public:
    struct Sizes {
        uint64_t tokens, sequences, logit_rows, blocks;
    };
    explicit PassInputs(const PassContext& context) : c_(context), memory_(context.device.plugin) {}

    Result<> reserve(const Sizes& sizes) { return memory_.reserve(bytes_of(sizes)); } // addresses change
    bool has_room_for(const Batch&) const;
    Result<> make_room_for(const Batch& batch); // and for some more: addresses change
    // bucket: of the graph that the batch was padded for; none: of none.
    Result<PlacedInputs> place(const Batch&, const std::optional<GraphBucket>& bucket);

    // ---- of the batch that was placed last, which must still be there
    const pb_attention_batch& attention(uint32_t group) const { return batches_[group]; } // of tokens
    const pb_state& states(uint32_t group) const { return states_[group - c_.kv.batch_form().token_groups]; }

  private:
    uint64_t bytes_of(const Sizes&) const;
    pb_tensor place(std::span<const int32_t>); // (n) i32 where the device reads it, once the inputs are sent
    void place_attention(const Batch&, const std::optional<GraphBucket>&, const PlacedInputs&,
                         const pb_tensor& query_starts, const pb_tensor& seq_lens);
    void place_states(const Batch&, const pb_tensor& query_starts);

    const PassContext c_;
    StepInputs memory_;
    std::vector<pb_attention_batch> batches_; // by group of tokens
    std::vector<pb_state> states_;            // by group of states, for a layer at offset 0
};

}  // namespace patchbay::runner
