#include "runner/batch_pages.hpp"

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

}  // namespace patchbay::runner
