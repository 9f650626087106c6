#include "runner/pass_inputs.hpp"

#include "patchbay/sdk/tensor.hpp"

namespace patchbay::runner {
namespace {

PassInputs::Sizes sizes_of(const Batch& batch) {
    return {batch.tokens(), batch.sequences(), batch.arrays().logit_rows.size(), batch.pages().blocks().size()};
}

}  // namespace

pb_tensor PassInputs::place(std::span<const int32_t> values) {
    const auto n = static_cast<int64_t>(values.size());
    if (!c_.device.computes()) return tensor(nullptr, PB_I32, {n}, 1);
    if (c_.device.info.host_memory) return tensor(const_cast<int32_t*>(values.data()), PB_I32, {n});
    return tensor(const_cast<int32_t*>(memory_.place(values)), PB_I32, {n}, 1);
}

uint64_t PassInputs::bytes_of(const Sizes& s) const {
    const auto room = StepInputs::room_for;
    const BatchForm& form = c_.kv.batch_form();
    return (c_.hidden.goes_on_from ? 3 : 2) * room(s.tokens, 4) + room(s.logit_rows, 4) +
           3 * room(s.sequences + 1, 4) + form.token_groups * (room(s.tokens, 8) + room(s.sequences + 1, 4)) +
           room(s.blocks, 4) + form.state_groups * room(s.sequences, 4);
}

bool PassInputs::has_room_for(const Batch& batch) const {
    return !c_.device.has_own_memory() || bytes_of(sizes_of(batch)) <= memory_.bytes();
}

Result<> PassInputs::make_room_for(const Batch& batch) {
    const uint64_t bytes = bytes_of(sizes_of(batch));
    return memory_.reserve(bytes + bytes / 2);
}

Result<PlacedInputs> PassInputs::place(const Batch& batch, const std::optional<GraphBucket>& bucket) {
    memory_.clear();
    const BatchArrays& arrays = batch.arrays();
    PlacedInputs inputs{place(arrays.ids), place(arrays.positions), place(arrays.logit_rows), {}, batch.draft_step};
    if (c_.hidden.goes_on_from) inputs.features = place(arrays.features);
    const pb_tensor starts = place(arrays.query_starts), lengths = place(arrays.seq_lens);
    place_states(batch, starts);
    place_attention(batch, bucket, inputs, starts, lengths);
    if (!c_.device.has_own_memory()) return inputs;
    const int32_t* const blocks = memory_.place(batch.pages().blocks());
    for (pb_attention_batch& b : batches_) b.device.blocks = blocks;
    PB_CHECK(memory_.send());
    return inputs;
}

void PassInputs::place_attention(const Batch& batch, const std::optional<GraphBucket>& bucket,
                                 const PlacedInputs& inputs, const pb_tensor& query_starts,
                                 const pb_tensor& seq_lens) {
    batches_.clear();
    for (uint32_t g = 0; g < c_.kv.batch_form().token_groups; ++g) {
        pb_attention_batch b = batch.attention(g);
        if (c_.device.plugin.table->queue) b.queue = c_.device.plugin.call<&pb_device::queue>();
        if (bucket) {
            b.graph = 1;
            b.max_query_len = bucket->shape == GraphShape::kDecode ? 1 : bucket->tokens;
            b.max_seq_len = c_.kv.max_seq_len();
        }
        if (c_.device.has_own_memory())
            b.device = {static_cast<const int32_t*>(query_starts.data), static_cast<const int32_t*>(seq_lens.data),
                        memory_.place(std::span(b.block_starts, b.seq_count + 1)), nullptr,
                        memory_.place(std::span(b.slot_mapping, b.token_count)),
                        static_cast<const int32_t*>(inputs.positions.data)};
        batches_.push_back(b);
    }
}

// What the model needs to find states.
void PassInputs::place_states(const Batch& batch, const pb_tensor& query_starts) {
    const BatchForm& form = c_.kv.batch_form();
    states_.resize(form.state_groups);
    if (states_.empty()) return;
    pb_state common{};
    common.struct_size = sizeof common;
    common.query_starts = query_starts;
    common.is_first_chunk = place(batch.arrays().is_first_chunk);
    for (uint32_t g = 0; g < form.state_groups; ++g) {
        states_[g] = common;
        states_[g].pages = place(batch.pages().state_pages(form.token_groups + g));
    }
}

}  // namespace patchbay::runner
