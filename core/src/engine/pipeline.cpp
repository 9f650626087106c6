#include "engine/pipeline.hpp"

#include <utility>

#include "engine/facts.hpp"
#include "engine/speculation/draft_model.hpp"

namespace patchbay::engine {

Pipeline::Pipeline(const PipelineInputs& in, std::unique_ptr<kv::KvCache> kv_cache, host::Proposer proposer,
                   host::KvPolicy kv_policy)
    : common(in), cache(common, std::move(kv_cache), std::move(kv_policy)), sequences(in, common, *cache.kv),
      scheduling(common, *cache.kv, sequences), sampling(in, common), drafts(in, common, *cache.kv, sequences),
      placement(in, common, *cache.kv, sequences, scheduling, sampling),
      batches(in, common, *cache.kv, sequences, sampling, drafts),
      proposals({common.settings, common.config.speculative, in.facts.model.vocab_size, in.facts.max_model_len,
                 sequences.all, *cache.kv, sequences.beams, sampling.constraints, drafts.verification, drafts.records,
                 sequences.draft_kv, sequences.aborts, batches.copies, common.clock, common.context, common.journal},
                std::move(proposer), in.executor.drafts() ? in.draft_model : nullptr),
      output(in, common, *cache.kv, sequences, scheduling, sampling, drafts, proposals),
      swaps(in, common, cache, sequences, scheduling, sampling, placement, proposals),
      summary({sequences.all, *cache.kv, scheduling.pressure, placement.preemption, common.executor,
               sampling.structured_output, common.clock, common.context}),
      passes({common.clock, common.context, *cache.kv, batches.builder, common.executor, output.in_flight,
              sampling.sampler, drafts.verification, placement.preemption, output.commit, summary}),
      intake({common.settings, in.facts.model.vocab_size, in.facts.max_model_len, in.facts.synthetic_acceptance,
              in.tokenizer != nullptr, sequences.all, sequences.siblings, sequences.beams, scheduling.admission,
              output.outputs, sampling.sampler, common.executor, sampling.token_rules, sampling.structured_output,
              sampling.constraints, sampling.prompt_logprobs, sampling.pooling, common.clock}),
      loop({common.clock, common.context, sequences.all, *cache.kv, scheduling.admission, scheduling.scheduler,
            placement.placement, drafts.branches, passes, batches.copies, proposals, sequences.beams,
            sampling.pooling, output.lifecycle, swaps.all, summary},
           in.sync_reason),
      kv_events(*cache.kv, common.clock),
      files(loop.observers(), kv_events, {sequences.all, cache.kv->pool(), scheduling.scheduler}) {
    sampling.sampler.connect(common.executor, drafts.verification);
    if (execution::DraftPasses* const drafting = common.executor.drafts())
        in.draft_model->start({*drafting, *cache.kv, sampling.sampler.slot(), in.eos, common.clock, sampling.rows,
                               sequences.draft_kv});
    loop.observers().add(kv_events);
}

Pipeline::~Pipeline() { common.executor.cancel(); } // before the sampler goes, whose kernels may be in flight

}  // namespace patchbay::engine
