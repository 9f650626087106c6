#include "runner/batch.hpp"

#include <algorithm>

#include "kv/block_table.hpp"
#include "patchbay/abi/attention.h"

namespace patchbay::runner {

void BatchPages::clear(const BatchForm& form) {
    form_ = form;
    table_lengths_.clear();
    tables_.resize(form.token_groups);
    block_starts_.resize(form.token_groups);
    slots_.resize(form.token_groups);
    states_.resize(form.state_groups);
    for (auto& pages : tables_) pages.clear();
    for (auto& slots : slots_) slots.clear();
    for (auto& pages : states_) pages.clear();
}

void BatchPages::add(const kv::BlockTable& table, uint32_t computed, uint32_t count) {
    const uint32_t block_size = form_.block_size, blocks = (computed + count + block_size - 1) / block_size;
    table_lengths_.push_back(static_cast<int32_t>(blocks));
    for (uint32_t g = 0; g < form_.token_groups; ++g) {
        const auto& pages = table.pages[g];
        tables_[g].insert(tables_[g].end(), pages.begin(), pages.begin() + blocks);
        for (uint32_t at = computed; at < computed + count; ++at)
            slots_[g].push_back(int64_t{pages[at / block_size]} * block_size + at % block_size);
    }
    for (uint32_t g = 0; g < form_.state_groups; ++g) states_[g].push_back(table.pages[form_.token_groups + g][0]);
}

void BatchPages::pad(uint32_t tokens, uint32_t sequences) {
    constexpr kv::BlockId kAnyPage = 0; // it is read, for results that are never read
    table_lengths_.insert(table_lengths_.end(), tokens, 1);
    for (auto& slots : slots_) slots.insert(slots.end(), tokens, -1);
    for (auto& pages : tables_) pages.insert(pages.end(), tokens, kAnyPage);
    for (auto& pages : states_) pages.resize(sequences, kv::kNoBlock);
    table_lengths_.resize(sequences, 0);
}

void BatchPages::finish() {
    blocks_.clear();
    for (uint32_t g = 0; g < form_.token_groups; ++g) {
        std::vector<int32_t>& starts = block_starts_[g];
        starts.assign(1, static_cast<int32_t>(blocks_.size()));
        for (const int32_t length : table_lengths_) starts.push_back(starts.back() + length);
        blocks_.insert(blocks_.end(), tables_[g].begin(), tables_[g].end());
    }
}

void Batch::clear(const BatchForm& form) {
    for (auto* of : {&arrays_.ids, &arrays_.positions, &arrays_.features, &arrays_.seq_lens, &arrays_.is_first_chunk,
                     &arrays_.logit_rows})
        of->clear();
    arrays_.query_starts.assign(1, 0);
    pages_.clear(form);
    copies_.clear();
    hidden_.clear();
    draft_step = kept_row = 0;
    max_query_ = max_seq_ = 0;
}

void Batch::add(const BatchRow& row) {
    BatchArrays& a = arrays_;
    const auto count = static_cast<uint32_t>(row.tokens.size());
    const auto first = static_cast<int32_t>(a.ids.size());
    a.ids.insert(a.ids.end(), row.tokens.begin(), row.tokens.end());
    a.features.insert(a.features.end(), row.features.begin(), row.features.end());
    for (uint32_t i = 0; i < count; ++i) a.positions.push_back(static_cast<int32_t>(row.computed + i));
    pages_.add(row.table, row.computed, count);
    a.is_first_chunk.push_back(row.computed == 0);
    for (uint32_t i = count - row.logit_rows; i < count; ++i) a.logit_rows.push_back(first + static_cast<int32_t>(i));
    a.query_starts.push_back(first + static_cast<int32_t>(count));
    a.seq_lens.push_back(static_cast<int32_t>(row.computed + count));
    max_query_ = std::max(max_query_, count);
    max_seq_ = std::max(max_seq_, row.computed + count);
}

void Batch::pad(uint32_t tokens, uint32_t sequences, uint32_t logit_rows) {
    BatchArrays& a = arrays_;
    const uint32_t more = tokens - std::min(tokens, this->tokens());
    pages_.pad(more, sequences);
    for (uint32_t i = 0; i < more; ++i) {
        a.ids.push_back(0);
        a.positions.push_back(0);
        a.query_starts.push_back(static_cast<int32_t>(a.ids.size()));
        a.seq_lens.push_back(1);
    }
    if (more > 0) {
        max_query_ = std::max(max_query_, 1u);
        max_seq_ = std::max(max_seq_, 1u);
    }
    a.features.resize(a.ids.size(), 0);
    a.query_starts.resize(size_t{sequences} + 1, static_cast<int32_t>(a.ids.size()));
    a.seq_lens.resize(sequences, 0);
    a.is_first_chunk.resize(sequences, 0);
    a.logit_rows.resize(logit_rows, 0);
    finish();
}

pb_attention_batch Batch::attention(uint32_t group) const {
    const BatchArrays& a = arrays_;
    return {sizeof(pb_attention_batch), sequences(), tokens(), 0, a.query_starts.data(), a.seq_lens.data(),
            pages_.block_starts(group).data(), pages_.blocks().data(), pages_.slots(group).data(), a.positions.data(),
            max_query_, max_seq_};
}

}  // namespace patchbay::runner
