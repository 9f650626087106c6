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
    copies_.clear();
    hidden_.clear();
    table_lengths_.clear();
    tables_.resize(form.token_groups);
    block_starts_.resize(form.token_groups);
    slots_.resize(form.token_groups);
    states_.resize(form.state_groups);
    for (auto& pages : tables_) pages.clear();
    for (auto& slots : slots_) slots.clear();
    for (auto& pages : states_) pages.clear();
    max_query_ = max_seq_ = 0;
}

void Batch::add(const BatchRow& row) {
    const uint32_t block_size = form_.block_size;
    const auto count = static_cast<uint32_t>(row.tokens.size());
    const auto first = static_cast<int32_t>(ids_.size());
    ids_.insert(ids_.end(), row.tokens.begin(), row.tokens.end());
    features_.insert(features_.end(), row.features.begin(), row.features.end());
    for (uint32_t i = 0; i < count; ++i) positions_.push_back(static_cast<int32_t>(row.computed + i));
    const uint32_t blocks = (row.computed + count + block_size - 1) / block_size;
    table_lengths_.push_back(static_cast<int32_t>(blocks));
    for (uint32_t g = 0; g < form_.token_groups; ++g) {
        const auto& pages = row.table.pages[g];
        tables_[g].insert(tables_[g].end(), pages.begin(), pages.begin() + blocks);
        for (uint32_t at = row.computed; at < row.computed + count; ++at)
            slots_[g].push_back(int64_t{pages[at / block_size]} * block_size + at % block_size);
    }
    for (uint32_t g = 0; g < form_.state_groups; ++g)
        states_[g].push_back(row.table.pages[form_.token_groups + g][0]);
    is_first_chunk_.push_back(row.computed == 0);
    for (uint32_t i = count - row.logit_rows; i < count; ++i) logit_rows_.push_back(first + static_cast<int32_t>(i));
    query_starts_.push_back(first + static_cast<int32_t>(count));
    seq_lens_.push_back(static_cast<int32_t>(row.computed + count));
    max_query_ = std::max(max_query_, count);
    max_seq_ = std::max(max_seq_, row.computed + count);
}

void Batch::finish() {
    blocks_.clear();
    for (uint32_t g = 0; g < form_.token_groups; ++g) {
        std::vector<int32_t>& starts = block_starts_[g];
        starts.assign(1, static_cast<int32_t>(blocks_.size()));
        for (const int32_t length : table_lengths_) starts.push_back(starts.back() + length);
        blocks_.insert(blocks_.end(), tables_[g].begin(), tables_[g].end());
    }
}

void Batch::pad(uint32_t tokens, uint32_t sequences, uint32_t logit_rows) {
    constexpr kv::BlockId kAnyPage = 0; // it is read, for results that are never read
    while (this->tokens() < tokens) {
        ids_.push_back(0);
        positions_.push_back(0);
        for (auto& slots : slots_) slots.push_back(-1);
        query_starts_.push_back(static_cast<int32_t>(ids_.size()));
        seq_lens_.push_back(1);
        table_lengths_.push_back(1);
        for (auto& pages : tables_) pages.push_back(kAnyPage);
        max_query_ = std::max(max_query_, 1u);
        max_seq_ = std::max(max_seq_, 1u);
    }
    features_.resize(ids_.size(), 0);
    query_starts_.resize(size_t{sequences} + 1, static_cast<int32_t>(ids_.size()));
    seq_lens_.resize(sequences, 0);
    is_first_chunk_.resize(sequences, 0);
    for (auto& pages : states_) pages.resize(sequences, kv::kNoBlock);
    table_lengths_.resize(sequences, 0);
    logit_rows_.resize(logit_rows, 0);
    finish();
}

pb_attention_batch Batch::attention(uint32_t group) const {
    return {sizeof(pb_attention_batch), sequences(), tokens(), 0, query_starts_.data(), seq_lens_.data(),
            block_starts_[group].data(), blocks_.data(), slots_[group].data(), positions_.data(), max_query_, max_seq_};
}

}  // namespace patchbay::runner
