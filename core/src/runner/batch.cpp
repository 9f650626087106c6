#include "runner/batch.hpp"

#include <algorithm>

namespace patchbay::runner {

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
