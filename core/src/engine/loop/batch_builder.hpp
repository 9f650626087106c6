// A placed step as what an executor computes: the flat token batch, and a row to sample for each of its logit rows.
#pragma once
#include <vector>

#include "engine/output/pooling.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/speculation/branches.hpp"
#include "execution/executor.hpp"

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class DraftKvTable;
struct StepContext;

class BatchBuilder {
  public:
    struct Parts {
        const runner::BatchForm& form;
        const kv::KvCache& kv;
        const SampleRowBuilder& rows;
        Constraints& constraints;
        PromptLogprobs& prompt_logprobs;
        Pooling& pooling;
        Branches& branches;
        DraftKvTable& draft_kv;
        uint32_t vocab_size;
        StepContext& context;
    };
    explicit BatchBuilder(const Parts& parts) : p_(parts) {}

    void build(std::span<Placed> step); // whose first rows it sets
    void build_copies();                // of pages, and nothing else
    const SampleRows& rows() const { return rows_; }
    uint32_t tokens() const { return batch_.tokens(); }
    execution::StepInput input() const; // but for the sampler. Valid until the next build
    // Of rows of a step, for what stands in for a model.
    std::vector<execution::RowPath> paths(std::span<const Placed> step) const;

  private:
    void add(Placed&);
    void add(Branch&, const Placed&);
    void add_copies();

    const Parts p_;
    runner::Batch batch_;
    std::vector<runner::BatchRow> batch_rows_;
    std::vector<TokenId> placeholders_; // of rows whose token a step in flight makes
    SampleRows rows_;
};

}  // namespace patchbay::engine
