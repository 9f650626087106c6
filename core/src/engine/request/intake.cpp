#include "engine/request/intake.hpp"

#include <utility>

#include "base/refusals.hpp"
#include "config/engine_config.hpp"
#include "engine/groups/best_of.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/sampler_port.hpp"
#include "engine/scheduling/admission.hpp"
#include "execution/sync_reasons.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::engine {

Result<> Intake::check_length(const Request& request) const {
    const size_t prompt = request.prompt.size(), output = request.pooling ? 0 : request.sampling.max_tokens;
    if (prompt + output <= p_.max_model_len && (prompt < p_.max_model_len || output == 0)) return {};
    return invalid("a prompt of " + std::to_string(prompt) + " tokens" +
                   (request.pooling ? " exceeds" : " and max_tokens of " + std::to_string(output) + " exceed") +
                   " max_model_len of " + std::to_string(p_.max_model_len));
}

Result<> Intake::check_prompt(const Request& request) const {
    const SamplingParams& sampling = request.sampling;
    if (request.prompt.empty()) return invalid("the prompt is empty");
    PB_CHECK(check_length(request));
    for (const TokenId t : request.prompt)
        if (t < 0 || static_cast<uint32_t>(t) >= p_.vocab_size)
            return invalid("prompt token " + std::to_string(t) + ", expected 0 to " +
                           std::to_string(p_.vocab_size - 1));
    if (request.cache_salt.size() > kLongestSalt)
        return invalid("cache_salt has " + std::to_string(request.cache_salt.size()) + " bytes, expected at most " +
                       std::to_string(kLongestSalt));
    if (!sampling.stop.empty() && !p_.has_tokenizer)
        return fail(StatusCode::kUnsupported, "stop strings need a tokenizer");
    if (sampling.prompt_logprobs && !p_.settings.enable_chunked_prefill &&
        request.prompt.size() - 1 > p_.prompt_logprobs.max_rows()) // none of the first token
        return invalid("prompt_logprobs of a prompt of " + std::to_string(request.prompt.size()) +
                       " tokens take a row for each but the first, more than the " +
                       std::to_string(p_.prompt_logprobs.max_rows()) + " of a step, without enable_chunked_prefill");
    return {};
}

// Requests that arrive later are checked when they do.
Result<> Intake::check_room(const Request& request, uint64_t now_ns) const {
    if (request.arrival_ns <= now_ns && p_.admission.is_full_by(now_ns))
        return fail(StatusCode::kExhausted, p_.admission.full_queue());
    return {};
}

// Nothing is sampled, so the sampler has no say.
Result<> Intake::check_pooling(Request& request) const {
    if (!model_computes())
        return fail(StatusCode::kUnsupported,
                    "embeddings on a device that computes nothing: there are no hidden states");
    if (p_.executor.hidden_size() == 0)
        return fail(StatusCode::kUnsupported,
                    "the model does not give its hidden states, which embeddings are made of");
    SamplingParams none{.temperature = 0};
    none.skip_reading_prefix_cache = request.sampling.skip_reading_prefix_cache;
    none.max_tokens = 1; // for schedulers
    request.sampling = std::move(none);
    return check_prompt(request);
}

Result<Intake::Checked> Intake::check(Request& request, uint64_t now_ns) {
    SamplingParams& sampling = request.sampling;
    Checked out;
    if (request.pooling) {
        PB_CHECK(check_pooling(request));
        PB_CHECK(check_room(request, now_ns));
        return out;
    }
    PB_CHECK(check_sampling(sampling, {p_.vocab_size, p_.settings.max_logprobs}));
    switch (p_.executor.tokens()) {
        case execution::TokenSource::kModel: PB_CHECK(p_.sampler.accepts(wire_params(sampling, {}))); break;
        case execution::TokenSource::kMadeUp: PB_CHECK(check_made_up(sampling, TokenText::kNone)); break;
        case execution::TokenSource::kMadeUpText: PB_CHECK(check_made_up(sampling, TokenText::kGiven)); break;
    }
    if (p_.synthetic_acceptance) PB_CHECK(check_synthetic_acceptance(sampling));
    PB_CHECK(check_prompt(request));
    PB_CHECK(check_room(request, now_ns));
    if (sampling.structured_outputs) {
        PB_TRY(out.grammar, p_.structured_output.compile(*sampling.structured_outputs, std::move(request.grammar)));
    }
    PB_CHECK(p_.sampler.serves(sampling));
    out.prompt_params = params_of_prompt(sampling);
    if (model_computes() && sampling.prompt_logprobs) PB_CHECK(p_.sampler.accepts(out.prompt_params));
    PB_TRY(out.rules, p_.token_rules.read(sampling, std::move(request.token_rules)));
    if (sampling.beam_width == 0) return out;
    PB_CHECK(p_.beams.check(request));
    pb_sampling_params params = wire_params(sampling, {});
    params.logprobs = p_.beams.candidates_wanted(sampling) + 1;
    if (model_computes()) PB_CHECK(p_.sampler.accepts(params));
    return out;
}

Result<RequestId> Intake::add(Request request) {
    const uint64_t now = p_.clock.now_ns();
    PB_TRY(Checked checked, check(request, now));
    const SamplingParams& sampling = request.sampling;
    if (sampling.beam_width > 0) {
        request.on_output = [n = sampling.n, then = std::move(request.on_output)](const RequestOutput& out) {
            if (then && out.index < n) then(out);
        };
    } else if (const uint32_t count = sequences_of(sampling); count > sampling.n) {
        request.on_output = best_of(sampling.n, count, std::move(request.on_output));
    }
    if (request.arrival_ns == 0) request.arrival_ns = now;
    Sequence& s = p_.sequences.add(make(std::make_shared<const Request>(std::move(request)), 0));
    if (checked.rules) p_.token_rules.add(s, std::move(checked.rules));
    if (p_.token_rules.applies(s)) s.sampling.history_reason = execution::sync_reason::kHistory;
    if (s.request->sampling.prompt_logprobs) p_.prompt_logprobs.add(s, checked.prompt_params);
    if (s.request->pooling) p_.pooling.add(s);
    if (checked.grammar) p_.structured_output.add(s, std::move(checked.grammar));
    if (s.has_siblings() || s.is_beam()) add_siblings(s); // a search of one beam is a group of one
    return s.id;
}

void Intake::add_siblings(Sequence& first) {
    std::vector<Sequence*> all = {&first};
    const uint32_t count = sequences_of(first.request->sampling);
    for (uint32_t i = 1; i < count; ++i) {
        auto made = make(first.request, i);
        made->group = made->output.delta.id = first.id;
        made->place = Place::kHeld;
        made->sampling.history_reason = first.sampling.history_reason;
        all.push_back(&p_.sequences.add(std::move(made)));
        p_.constraints.inherit(first, *all.back());
    }
    p_.siblings.add(all);
    if (first.is_beam()) p_.beams.add(all);
    else p_.siblings.hold(first);
}

std::unique_ptr<Sequence> Intake::make(std::shared_ptr<const Request> request, uint32_t index) {
    auto sequence = std::make_unique<Sequence>(next_id_++, std::move(request));
    Sequence& s = *sequence;
    const SamplingParams& sampling = s.request->sampling;
    s.index = index;
    s.tokens = s.request->prompt;
    s.prompt_count = static_cast<uint32_t>(s.tokens.size());
    std::string salt = s.request->cache_salt;
    if (s.request->cache_per_tenant) salt = "tenant " + std::to_string(s.request->tenant) + ": " + salt;
    if (!salt.empty()) s.kv.salt = kv::root_key(salt);
    s.kv.reads_prefixes = !sampling.skip_reading_prefix_cache;
    for (const auto& [token, bias] : sampling.logit_bias) s.sampling.bias.push_back({token, bias});
    s.sampling.params = wire_params(sampling, s.sampling.bias);
    const pb_sampling_params& p = s.sampling.params;
    if (p.repetition_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0 || p.dry_multiplier > 0 ||
        s.sampling.samples_by_surprisal())
        s.sampling.history_reason = execution::sync_reason::kHistory;
    if (sampling.seed) {
        s.sampling.seed = *sampling.seed + index;
    } else {
        const PhiloxBlock bits = draw(p_.settings.seed, s.id, Stream::kSample, 0);
        s.sampling.seed = uint64_t{bits[0]} << 32 | bits[1];
    }
    p_.outputs.begin(s);
    return sequence;
}

}  // namespace patchbay::engine
