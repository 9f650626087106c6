#include "engine/pipeline.hpp"

namespace patchbay::engine {

Pipeline::Pipeline(const PipelineInputs& in, std::unique_ptr<kv::KvCache> cache, host::Proposer proposer,
                   host::KvPolicy policy)
    : config(in.config), settings(config.engine), speculation(config.speculative), swap_settings(config.swap),
      executor(in.executor), journal(context, in.facts.plugins), kv(std::move(cache)),
      kv_policy(std::move(policy), *kv, in.clock, context, journal), siblings(*kv),
      draft_kv(in.executor.drafts() != nullptr),
      beams({in.eos, in.facts.vocab_size, settings.max_num_seqs}, sequences, *kv, draft_kv, context),
      pressure(settings.watermark), hints(sequences, *kv, siblings, beams),
      scheduler(settings, sequences, in.clock, context, journal),
      view(settings, sequences, *kv, hints, beams, pressure),
      admission(sequences, hints, scheduler, context, settings.max_waiting),
      token_rules(in.tokenizer, in.eos, in.facts.vocab_size),
      structured_output(in.tokenizer, in.eos, in.facts.vocab_size, in.clock, context),
      constraints({&token_rules, &structured_output}), prompt_logprobs(settings, in.facts.vocab_size),
      rows(token_rules, surprisals), sampler(in.facts.vocab_size, in.clock, context, journal),
      verification(speculation, in.facts.vocab_size, drafts), branches(settings, *kv, drafts, draft_kv, context),
      preemption({settings, sequences, *kv, admission, hints, beams, draft_kv, executor, context}),
      placement({settings, sequences, *kv, admission, scheduler, hints, siblings, beams, preemption, pressure,
                 prompt_logprobs, draft_kv, context}),
      recomputation(sequences, *kv, hints, preemption),
      batches({in.batch_form, *kv, rows, constraints, prompt_logprobs, pooling, branches, draft_kv,
               in.facts.vocab_size, context}),
      copies(batches, executor, *kv),
      proposals({settings, speculation, in.facts.vocab_size, in.facts.max_model_len, sequences, *kv, beams, constraints,
                 verification, drafts, draft_kv, aborts, copies, in.clock, context, journal},
                std::move(proposer), in.executor.drafts() ? in.draft_model : nullptr),
      in_flight(*kv, in.facts.max_model_len),
      outputs(in.tokenizer, in.eos, in.facts.max_model_len, surprisals, context),
      lifecycle({sequences, *kv, admission, scheduler, hints, siblings, beams, in_flight, outputs, constraints,
                 prompt_logprobs, pooling, surprisals, proposals, aborts, in.clock, context}),
      commit({sequences, lifecycle, outputs, constraints, prompt_logprobs, pooling, siblings, beams, branches,
              proposals, in_flight, sampler, aborts, in.facts.vocab_size,
              executor.tokens() == execution::TokenSource::kModel, context}),
      scheduler_swaps(scheduler, context),
      sampler_swaps(sampler, {sequences, prompt_logprobs, executor, speculation, context}),
      proposer_swaps(proposals, context), kv_policy_swaps(kv_policy, sequences, context),
      attention_swaps(executor, recomputation, in.clock, context, journal),
      model_swaps({config, in.facts, executor, recomputation, in.clock, context, journal}),
      swaps({swap_settings, {&scheduler_swaps, &sampler_swaps, &proposer_swaps, &kv_policy_swaps, &attention_swaps,
                             &model_swaps},
             journal, context, in.clock}),
      summary({sequences, *kv, pressure, preemption, executor, structured_output, in.clock, context}),
      passes({in.clock, context, *kv, batches, executor, in_flight, sampler, verification, preemption, commit,
              summary}),
      intake({settings, in.facts.vocab_size, in.facts.max_model_len, in.facts.synthetic_acceptance,
              in.tokenizer != nullptr, sequences, siblings, beams, admission, outputs, sampler, executor, token_rules,
              structured_output, constraints, prompt_logprobs, pooling, in.clock}),
      loop({in.clock, context, sequences, *kv, admission, scheduler, placement, branches, passes, copies, proposals,
            beams, pooling, lifecycle, swaps, summary},
           in.sync_reason),
      kv_events(*kv, in.clock) {
    scheduler.connect(view);
    sampler.connect(executor, verification);
    if (execution::DraftPasses* const drafting = executor.drafts())
        in.draft_model->start({*drafting, *kv, sampler.slot(), in.eos, in.clock, rows, draft_kv});
    loop.add(kv_events);
}

SwapPort& Pipeline::port(SwapSlot slot) {
    SwapPort* const ports[] = {&scheduler_swaps, &sampler_swaps, &proposer_swaps, &kv_policy_swaps, &attention_swaps,
                               &model_swaps};
    return *ports[static_cast<size_t>(slot)];
}

Pipeline::~Pipeline() { executor.cancel(); } // before the sampler goes, whose kernels may be in flight

}  // namespace patchbay::engine
