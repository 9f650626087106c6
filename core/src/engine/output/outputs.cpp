#include "engine/output/outputs.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/loop/step_context.hpp"
#include "engine/output/output_text.hpp"
#include "engine/output/repetition.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/step_samples.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::engine {
namespace {

// Of a sequence's output, which continues the text of its prompt.
std::unique_ptr<OutputText> empty_text(std::shared_ptr<const text::Tokenizer> tokenizer, const Sequence& s) {
    using Keep = StopMatcher::Keep;
    const SamplingParams& p = s.request->sampling;
    const auto prompt = std::span(s.tokens).first(s.prompt_count);
    const Keep keep = p.include_stop_str_in_output ? Keep::kIncluding : Keep::kBefore;
    const auto special = p.skip_special_tokens ? text::SpecialTokens::kLeftOut : text::SpecialTokens::kKept;
    return std::make_unique<OutputText>(
        OutputText{text::Detokenizer(std::move(tokenizer), prompt, special), StopMatcher(p.stop, keep)});
}

// Of a sequence that goes on, what a delta may hold; it keeps its memory for the next token.
void clear(RequestOutput& delta) {
    delta.tokens.clear();
    delta.stop_token.reset();
    delta.logprobs.clear();
    delta.text.clear();
    delta.prompt_logprobs = {};
    delta.embedding.clear();
}

void add_statistics(Sequence& s, size_t row, const StepSamples& samples) {
    if (!s.request->sampling.logits_statistics || row >= samples.statistics.size()) return;
    OutputSums& sums = s.output.sums;
    sums.logits.entropy += samples.statistics[row].entropy;
    sums.logits.max_logit += samples.statistics[row].max_logit;
    sums.logits.first_share += samples.statistics[row].first_share;
    sums.logits_rows += 1;
}

}  // namespace

Outputs::Outputs(std::shared_ptr<const text::Tokenizer> tokenizer, const std::vector<TokenId>& eos,
                 uint32_t max_model_len, Surprisals& surprisals, StepContext& context)
    : tokenizer_(std::move(tokenizer)), eos_(eos), max_model_len_(max_model_len), surprisals_(surprisals),
      context_(context) {}

void Outputs::begin(Sequence& s) const {
    s.output = {};
    if (tokenizer_) s.output.text = empty_text(tokenizer_, s);
    s.output.delta.id = s.group;
    s.output.delta.index = s.index;
}

bool Outputs::is_end(const SamplingParams& p, TokenId token) const {
    return !p.ignore_eos && std::ranges::find(eos_, token) != eos_.end();
}

// As in vLLM it is no stop reason; another end token of the model is one, where the tokenizer has its own.
bool Outputs::is_own_end(const SamplingParams& p, TokenId token) const {
    return !p.ignore_eos && tokenizer_ && tokenizer_->eos() == token;
}

std::optional<Ending> Outputs::append(Sequence& s, TokenId token, size_t row, const StepSamples& samples,
                                      bool must_end) {
    const SamplingParams& p = s.request->sampling;
    OutputState& out = s.output;
    s.tokens.push_back(token);
    out.delta.tokens.push_back(token);
    if (s.sampling.samples_by_surprisal())
        surprisals_.of(s.id).push_back(row < samples.surprisals.size() ? samples.surprisals[row] : 0);
    context_.report.work.sampled_tokens += 1;
    add_statistics(s, row, samples);
    if (s.sampling.params.logprobs > 0) out.sums.logprob += samples.logprobs[row];
    if (p.logprobs) out.delta.logprobs.push_back(samples.logprobs_of(row, *p.logprobs));

    const uint32_t made = s.outputs();
    const bool may_stop = made > p.min_tokens;
    const bool is_stop = std::ranges::find(p.stop_token_ids, token) != p.stop_token_ids.end();
    const bool ends = may_stop && (is_stop || is_end(p, token));
    if (out.text && (!ends || p.include_stop_str_in_output)) {
        StopMatcher& stops = out.text->stops;
        out.delta.text += stops.add(out.text->detokenizer.add(token), may_stop);
        if (!ends && !stops.matched().empty()) return Ending{FinishReason::kStop, stops.matched()};
    }
    const bool named = (is_stop || (tokenizer_ && tokenizer_->eos())) && !is_own_end(p, token);
    if (ends && named) out.delta.stop_token = token;
    if (ends) return Ending{FinishReason::kStop, named ? std::to_string(token) : ""};
    if (must_end) return Ending{FinishReason::kStop, ""}; // min_tokens or not
    if (s.request->ends_after > 0 && made >= s.request->ends_after) return Ending{FinishReason::kStop, ""};
    if (made >= p.max_tokens || s.tokens.size() >= max_model_len_) return Ending{FinishReason::kLength, ""};
    if (made >= p.min_tokens && repeats(std::span(s.tokens).last(made), p.repetition_detection))
        return Ending{FinishReason::kRepetition, "repetition_detected"};
    return std::nullopt;
}

void Outputs::finish(Sequence& s, Ending ending) const {
    RequestOutput& delta = s.output.delta;
    delta.finish = ending.reason;
    delta.stop_reason = std::move(ending.why);
    delta.error_code = ending.code;
    close(s);
    delta.cached_tokens = s.record.cached_tokens;
    delta.preemptions = s.record.preemptions;
    delta.first_scheduled_ns = s.record.first_scheduled_ns;
}

void Outputs::close(Sequence& s) const {
    OutputState& out = s.output;
    if (out.text && out.text->stops.matched().empty()) {
        out.delta.text += out.text->stops.add(out.text->detokenizer.finish());
        out.delta.text += out.text->stops.flush();
    }
    if (s.sampling.params.logprobs > 0) out.delta.cumulative_logprob = out.sums.logprob;
    const LogitsStatistics& sum = out.sums.logits;
    const double rows = out.sums.logits_rows;
    out.delta.logits.reset();
    if (rows > 0) out.delta.logits = {sum.entropy / rows, sum.max_logit / rows, sum.first_share / rows};
}

void Outputs::take_back(Sequence& s) const {
    const SamplingParams& p = s.request->sampling;
    OutputState& out = s.output;
    // The others stay: a draft model may compute them yet.
    const size_t published = s.outputs() - out.delta.tokens.size();
    out.sums = out.published;
    clear(out.delta);
    out.delta.beam_score.reset();
    if (out.text) {
        out.text = empty_text(tokenizer_, s);
        for (size_t i = 0; i < published; ++i)
            out.text->stops.add(out.text->detokenizer.add(s.tokens[s.prompt_count + i]), i + 1 > p.min_tokens);
    }
    if (!s.ended) return; // the step ends it
    out.delta.finish = FinishReason::kAbort;
    out.delta.stop_reason.clear();
    close(s);
}

void Outputs::hand_out(Sequence& s) const {
    if (s.request->on_output) s.request->on_output(s.output.delta);
    clear(s.output.delta);
    s.output.published = s.output.sums;
}

}  // namespace patchbay::engine
