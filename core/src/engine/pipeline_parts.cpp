#include "engine/pipeline_parts.hpp"

#include <utility>

#include "engine/facts.hpp"

namespace patchbay::engine {

CommonParts::CommonParts(const PipelineInputs& in)
    : config(in.config), settings(config.engine), clock(in.clock), executor(in.executor),
      journal(context, in.facts.plugins) {}

CacheParts::CacheParts(CommonParts& c, std::unique_ptr<kv::KvCache> cache, host::KvPolicy chosen)
    : kv(std::move(cache)), policy(std::move(chosen), *kv, c.clock, c.context, c.journal) {}

SequenceParts::SequenceParts(const PipelineInputs& in, CommonParts& c, kv::KvCache& kv)
    : siblings(kv), draft_kv(c.executor.drafts() != nullptr),
      beams({in.eos, in.facts.model.vocab_size, c.settings, in.tokenizer.get()}, all, kv, draft_kv, c.context) {}

SchedulingParts::SchedulingParts(CommonParts& c, kv::KvCache& kv, SequenceParts& s)
    : pressure(c.settings.watermark), hints(s.all, kv, s.siblings, s.beams),
      scheduler(c.settings, s.all, c.clock, c.context, c.journal),
      view(c.settings, s.all, kv, hints, s.beams.room(), pressure),
      admission(s.all, hints, scheduler, c.context, c.settings.max_waiting) {
    scheduler.connect(view);
}

SamplingParts::SamplingParts(const PipelineInputs& in, CommonParts& c)
    : token_rules(in.tokenizer, in.eos, in.facts.model.vocab_size),
      structured_output(in.tokenizer, in.eos, in.facts.model.vocab_size, c.clock, c.context),
      constraints({&token_rules, &structured_output}), prompt_logprobs(c.settings, in.facts.model.vocab_size),
      rows(token_rules, surprisals), sampler(in.facts.model.vocab_size, c.clock, c.context, c.journal) {}

DraftParts::DraftParts(const PipelineInputs& in, CommonParts& c, kv::KvCache& kv, SequenceParts& s)
    : verification(c.config.speculative, in.facts.model.vocab_size, records),
      branches(c.settings, kv, records, s.draft_kv, c.context) {}

PlacementParts::PlacementParts(const PipelineInputs& in, CommonParts& c, kv::KvCache& kv, SequenceParts& s,
                               SchedulingParts& scheduling, SamplingParts& sampling)
    : preemption({c.settings, s.all, kv, scheduling.admission, scheduling.hints, s.beams, s.draft_kv, c.executor,
                  c.context}),
      placement({c.settings, s.all, kv, scheduling.admission, scheduling.scheduler, scheduling.hints, s.siblings,
                 s.beams, preemption, scheduling.pressure, sampling.prompt_logprobs, s.draft_kv, c.context}),
      recomputation(s.all, kv, scheduling.hints, preemption, sampling.prompt_logprobs, in.facts) {}

BatchParts::BatchParts(const PipelineInputs& in, CommonParts& c, kv::KvCache& kv, SequenceParts& s,
                       SamplingParts& sampling, DraftParts& drafts)
    : builder({in.batch_form, kv, sampling.rows, sampling.constraints, sampling.prompt_logprobs, sampling.pooling,
               drafts.branches, s.draft_kv, in.facts.model.vocab_size, c.context}),
      copies(builder, c.executor, kv) {}

OutputParts::OutputParts(const PipelineInputs& in, CommonParts& c, kv::KvCache& kv, SequenceParts& s,
                         SchedulingParts& scheduling, SamplingParts& sampling, DraftParts& drafts, Proposals& proposals)
    : in_flight(kv, in.facts.max_model_len),
      outputs(in.tokenizer, in.eos, in.facts.max_model_len, sampling.surprisals, c.context),
      lifecycle({s.all, kv, scheduling.admission, scheduling.scheduler, scheduling.hints, s.siblings, s.beams,
                 in_flight, outputs, sampling.constraints, sampling.prompt_logprobs, sampling.pooling,
                 sampling.surprisals, proposals, s.aborts, c.clock, c.context}),
      commit({s.all, lifecycle, outputs, sampling.constraints, sampling.prompt_logprobs, sampling.pooling, s.siblings,
              s.beams, drafts.branches, proposals, in_flight, sampling.sampler, s.aborts, in.facts.model.vocab_size,
              c.executor.tokens() == execution::TokenSource::kModel, c.context}) {}

SwapParts::SwapParts(const PipelineInputs& in, CommonParts& c, CacheParts& cache, SequenceParts& s,
                     SchedulingParts& scheduling, SamplingParts& sampling, PlacementParts& placement,
                     Proposals& proposals)
    : scheduler(scheduling.scheduler, c.context),
      sampler(sampling.sampler, {s.all, sampling.prompt_logprobs, c.executor, c.config.speculative, c.context}),
      proposer(proposals, c.context), kv_policy(cache.policy, s.all, c.context),
      attention(in.facts, c.executor, placement.recomputation, c.clock, c.context, c.journal),
      model({c.config, in.facts, c.executor, placement.recomputation, c.clock, c.context, c.journal}),
      all({c.config.swap, {&scheduler, &sampler, &proposer, &kv_policy, &attention, &model}, c.journal, c.context,
           c.clock}) {}

SwapPort& SwapParts::port(SwapSlot slot) {
    SwapPort* const ports[] = {&scheduler, &sampler, &proposer, &kv_policy, &attention, &model};
    return *ports[static_cast<size_t>(slot)];
}

}  // namespace patchbay::engine
