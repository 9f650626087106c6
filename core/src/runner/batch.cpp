#include "runner/batch.hpp"

#include <algorithm>

namespace patchbay::runner {

void Batch::clear(const BatchForm& form) {
    form_ = form;
    ids_.clear();
    positions_.clear();
    query_starts_.assign(1, 0);
    seq_lens_.clear();
    logit_rows_.clear();
    begins_.clear();
    rows_.clear();
    tables_.resize(form.token_groups);
    slots_.resize(form.token_groups);
    states_.resize(form.state_groups);
    for (auto& slots : slots_) slots.clear();
    for (auto& pages : states_) pages.clear();
    max_blocks_ = max_query_ = max_seq_ = 0;
}

void Batch::add(const BatchRow& row) {
    const uint32_t block_size = form_.block_size;
    const auto count = static_cast<uint32_t>(row.tokens.size());
    const auto first = static_cast<int32_t>(ids_.size());
    ids_.insert(ids_.end(), row.tokens.begin(), row.tokens.end());
    for (uint32_t i = 0; i < count; ++i) positions_.push_back(static_cast<int32_t>(row.computed + i));
    for (uint32_t g = 0; g < form_.token_groups; ++g)
        for (uint32_t at = row.computed; at < row.computed + count; ++at)
            slots_[g].push_back(int64_t{row.table.pages[g][at / block_size]} * block_size + at % block_size);
    for (uint32_t g = 0; g < form_.state_groups; ++g)
        states_[g].push_back(row.table.pages[form_.token_groups + g][0]);
    begins_.push_back(row.computed == 0);
    for (uint32_t i = count - row.logit_rows; i < count; ++i) logit_rows_.push_back(first + static_cast<int32_t>(i));
    query_starts_.push_back(first + static_cast<int32_t>(count));
    seq_lens_.push_back(static_cast<int32_t>(row.computed + count));
    rows_.push_back(&row.table);
    max_blocks_ = std::max(max_blocks_, (row.computed + count + block_size - 1) / block_size);
    max_query_ = std::max(max_query_, count);
    max_seq_ = std::max(max_seq_, row.computed + count);
}

void Batch::finish() {
    for (uint32_t g = 0; g < form_.token_groups; ++g) {
        tables_[g].assign(size_t{sequences()} * max_blocks_, kv::kNoBlock);
        for (size_t s = 0; s < rows_.size(); ++s) {
            const auto& pages = rows_[s]->pages[g];
            const size_t used = (static_cast<size_t>(seq_lens_[s]) + form_.block_size - 1) / form_.block_size;
            std::copy_n(pages.begin(), used, tables_[g].begin() + static_cast<ptrdiff_t>(s * max_blocks_));
        }
    }
}

pb_attention_batch Batch::attention(uint32_t group) const {
    return {sizeof(pb_attention_batch), sequences(), tokens(), max_blocks_, query_starts_.data(), seq_lens_.data(),
            tables_[group].data(), slots_[group].data(), positions_.data(), max_query_, max_seq_};
}

}  // namespace patchbay::runner
