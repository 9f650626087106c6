#include "runner/batch.hpp"

#include <algorithm>

namespace patchbay::runner {

void Batch::clear() {
    ids_.clear();
    positions_.clear();
    query_starts_.assign(1, 0);
    seq_lens_.clear();
    logit_rows_.clear();
    slots_.clear();
    blocks_.clear();
    max_blocks_ = max_query_ = max_seq_ = 0;
}

void Batch::add(const BatchRow& row, uint32_t block_size) {
    const auto count = static_cast<uint32_t>(row.tokens.size());
    const auto first = static_cast<int32_t>(ids_.size());
    ids_.insert(ids_.end(), row.tokens.begin(), row.tokens.end());
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t position = row.computed + i;
        positions_.push_back(static_cast<int32_t>(position));
        slots_.push_back(int64_t{row.blocks[position / block_size]} * block_size + position % block_size);
    }
    for (uint32_t i = count - row.logit_rows; i < count; ++i) logit_rows_.push_back(first + static_cast<int32_t>(i));
    query_starts_.push_back(first + static_cast<int32_t>(count));
    seq_lens_.push_back(static_cast<int32_t>(row.computed + count));
    const uint32_t used = (row.computed + count + block_size - 1) / block_size;
    blocks_.push_back(row.blocks.first(used));
    max_blocks_ = std::max(max_blocks_, used);
    max_query_ = std::max(max_query_, count);
    max_seq_ = std::max(max_seq_, row.computed + count);
}

void Batch::finish() {
    tables_.assign(size_t{sequences()} * max_blocks_, kv::kNoBlock);
    for (size_t s = 0; s < blocks_.size(); ++s)
        std::copy(blocks_[s].begin(), blocks_[s].end(), tables_.begin() + static_cast<ptrdiff_t>(s * max_blocks_));
}

pb_attention_batch Batch::attention() const {
    return {sizeof(pb_attention_batch), sequences(), tokens(), max_blocks_, query_starts_.data(), seq_lens_.data(),
            tables_.data(), slots_.data(), positions_.data(), max_query_, max_seq_};
}

}  // namespace patchbay::runner
