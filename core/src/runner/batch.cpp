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
    is_first_chunk_.clear();
    features_.clear();
    draft_step = kept_row = 0;
    rows_.clear();
    copies_.clear();
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
    features_.insert(features_.end(), row.features.begin(), row.features.end());
    for (uint32_t i = 0; i < count; ++i) positions_.push_back(static_cast<int32_t>(row.computed + i));
    for (uint32_t g = 0; g < form_.token_groups; ++g)
        for (uint32_t at = row.computed; at < row.computed + count; ++at)
            slots_[g].push_back(int64_t{row.table.pages[g][at / block_size]} * block_size + at % block_size);
    for (uint32_t g = 0; g < form_.state_groups; ++g)
        states_[g].push_back(row.table.pages[form_.token_groups + g][0]);
    is_first_chunk_.push_back(row.computed == 0);
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

void Batch::pad(uint32_t tokens, uint32_t sequences, uint32_t logit_rows) {
    constexpr kv::BlockId kAnyPage = 0; // it is read, for results that are never read
    max_blocks_ = std::max(max_blocks_, 1u);
    const size_t first = seq_lens_.size(), width = max_blocks_;
    while (this->tokens() < tokens) {
        ids_.push_back(0);
        positions_.push_back(0);
        for (auto& slots : slots_) slots.push_back(-1);
        query_starts_.push_back(static_cast<int32_t>(ids_.size()));
        seq_lens_.push_back(1);
        max_query_ = std::max(max_query_, 1u);
        max_seq_ = std::max(max_seq_, 1u);
    }
    features_.resize(ids_.size(), 0);
    const size_t with_token = seq_lens_.size();
    query_starts_.resize(size_t{sequences} + 1, static_cast<int32_t>(ids_.size()));
    seq_lens_.resize(sequences, 0);
    is_first_chunk_.resize(sequences, 0);
    for (auto& pages : states_) pages.resize(sequences, kv::kNoBlock);
    for (auto& table : tables_) {
        table.resize(sequences * width, kv::kNoBlock);
        for (size_t s = first; s < with_token; ++s) table[s * width] = kAnyPage;
    }
    logit_rows_.resize(logit_rows, 0);
}

void Batch::list_blocks(uint32_t group, std::vector<int32_t>& starts, std::vector<int32_t>& blocks) const {
    starts.assign(1, static_cast<int32_t>(blocks.size()));
    for (size_t s = 0; s < seq_lens_.size(); ++s) {
        const auto row = tables_[group].begin() + static_cast<ptrdiff_t>(s * max_blocks_);
        const auto used = (static_cast<uint32_t>(seq_lens_[s]) + form_.block_size - 1) / form_.block_size;
        blocks.insert(blocks.end(), row, row + used);
        starts.push_back(static_cast<int32_t>(blocks.size()));
    }
}

pb_attention_batch Batch::attention(uint32_t group) const {
    return {sizeof(pb_attention_batch), sequences(), tokens(), max_blocks_, query_starts_.data(), seq_lens_.data(),
            tables_[group].data(), slots_[group].data(), positions_.data(), max_query_, max_seq_};
}

}  // namespace patchbay::runner
