// The rows of a step that become tokens, in the order of the batch's logit rows.
#pragma once
#include <vector>

#include "engine/request/sequence_records.hpp"
#include "patchbay/abi/sampler.h"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::engine {

struct Sequence;
class TokenRules;

struct SampleRows {
    std::vector<pb_sample_row> rows;
    std::vector<uint32_t> with_statistics; // rows that want logits_statistics
    uint32_t max_logprobs = 0;          // that a row asks for

    uint32_t count() const { return static_cast<uint32_t>(rows.size()); }
    void clear() {
        rows.clear();
        with_statistics.clear();
        max_logprobs = 0;
    }
    void add(const pb_sample_row& row, bool statistics) {
        if (statistics) with_statistics.push_back(count());
        rows.push_back(row);
        if (row.params->logprobs > 0) max_logprobs = std::max(max_logprobs, row.params->logprobs - 1);
    }
    pb_sample_batch batch(float* logits, uint32_t vocab_size) const { // but for what it writes
        pb_sample_batch b{};
        b.struct_size = sizeof b;
        b.row_count = count();
        b.row_stride = sizeof(pb_sample_row);
        b.max_logprobs = max_logprobs;
        b.logits = tensor(logits, PB_F32, {static_cast<int64_t>(rows.size()), vocab_size});
        b.rows = rows.data();
        return b;
    }
};

// By sequences that sample by it (mirostat): the surprisal of each output token.
using Surprisals = SequenceRecords<std::vector<float>>;

// A sequence's rows, as samplers are shown them.
class SampleRowBuilder {
  public:
    SampleRowBuilder(const TokenRules& rules, const Surprisals& surprisals) : rules_(rules), surprisals_(surprisals) {}

    // For the token after so many of its drafts, or of tokens in flight, as if they were accepted.
    pb_sample_row row(const Sequence&, uint32_t after) const;

  private:
    const TokenRules& rules_;
    const Surprisals& surprisals_;
};

}  // namespace patchbay::engine
