#include "kernels/attention.hpp"

namespace patchbay::kernels {

std::string fault_of(const AttentionShape& shape, const AttentionBatch& batch) {
    const auto in = [](uint32_t s) { return "sequence " + std::to_string(s) + " of the batch: "; };
    if (batch.seq_count == 0) return batch.token_count == 0 ? "" : "the batch has tokens but no sequence";
    if (batch.query_starts[0] != 0)
        return "query_starts[0] is " + std::to_string(batch.query_starts[0]) + ", expected 0";
    for (uint32_t s = 0; s < batch.seq_count; ++s) {
        const int32_t from = batch.query_starts[s], to = batch.query_starts[s + 1];
        if (from > to || to > batch.token_count)
            return in(s) + "rows " + std::to_string(from) + " to " + std::to_string(to) + " of " +
                   std::to_string(batch.token_count);
        const int64_t length = batch.seq_lens[s], blocks = (length + shape.block_size - 1) / shape.block_size;
        if (length < 0 || blocks > batch.table_length(s))
            return in(s) + std::to_string(length) + " tokens need " + std::to_string(blocks) +
                   " blocks, the table has " + std::to_string(batch.table_length(s));
        const int32_t* table = batch.table(s);
        int64_t seen = length; // the first key that any row sees
        for (int32_t t = from; t < to; ++t) {
            const int64_t position = batch.positions[t];
            if (position < 0 || position >= length)
                return in(s) + "position " + std::to_string(position) + " of " + std::to_string(length) + " tokens";
            const int64_t first = first_key(shape, position);
            seen = first < seen ? first : seen;
        }
        int32_t signs = 0; // of all of its pages: to read on is faster than to stop at the first one that is missing
        for (int64_t block = seen / shape.block_size; block < blocks; ++block) signs |= table[block];
        if (signs >= 0) continue;
        for (int64_t block = seen / shape.block_size; block < blocks; ++block)
            if (table[block] < 0) return in(s) + "no page for block " + std::to_string(block) + ", which its rows see";
    }
    return "";
}

}  // namespace patchbay::kernels
