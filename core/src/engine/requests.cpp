// Requests on their way in and out: checks, queues, aborts.
#include <algorithm>
#include <cmath>

#include "engine/best_of.hpp"
#include "engine/simulation.hpp"
#include "engine/state.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::engine {
namespace {

std::string number(double x) {
    std::string s = std::to_string(x);
    s.erase(s.find_last_not_of('0') + 1);
    if (s.ends_with('.')) s.pop_back();
    return s;
}

constexpr size_t kMostStopIds = 1024;

Result<> check_range(const char* name, double value, double low, double high) {
    if (value >= low && value <= high) return {}; // also refuses NaN
    return fail(std::string(name) + " is " + number(value) + ", expected " + number(low) + " to " + number(high));
}

Result<> check_logprobs(const char* name, std::optional<int32_t>& asked, int32_t most, uint32_t vocab) {
    if (!asked) return {};
    const auto all = static_cast<int32_t>(vocab);
    const int32_t limit = most < 0 ? all : most, wanted = *asked == -1 ? all : *asked;
    if (wanted < 0 || wanted > limit) {
        const std::string meaning = *asked == -1 ? " (all " + std::to_string(all) + " tokens of the vocabulary)" : "";
        const bool allowed_elsewhere = wanted > limit && limit < all;
        return fail(std::string(name) + " is " + std::to_string(*asked) + meaning + ", expected 0 to " +
                    std::to_string(limit) +
                    (allowed_elsewhere ? ": raise engine.max_logprobs (--max-logprobs; -1: all tokens)" : ""));
    }
    asked = wanted;
    return {};
}

}  // namespace

// Says what −1 stands for.
Result<> Engine::State::check_sampling(SamplingParams& p) const {
    const uint32_t vocab = facts.vocab_size;
    for (const SamplingRange& r : kSamplingRanges) PB_CHECK(check_range(r.name, p.*r.field, r.low, r.high));
    PB_CHECK(check_logprobs("logprobs", p.logprobs, settings.max_logprobs, vocab));
    PB_CHECK(check_logprobs("prompt_logprobs", p.prompt_logprobs, settings.max_logprobs, vocab));
    PB_CHECK(check_range("n", p.n, 1, kMostOutputs));
    PB_CHECK(check_range("best_of", p.best_of, 0, kMostOutputs));
    if (p.best_of > 0 && p.best_of < p.n)
        return fail("best_of is " + std::to_string(p.best_of) + ", less than n of " + std::to_string(p.n));
    if (p.beam_width == 0 && sequences_of(p) > 1 && p.temperature == 0)
        return fail(std::string(p.n > 1 ? "n" : "best_of") + " is " + std::to_string(p.n > 1 ? p.n : p.best_of) +
                    " at temperature 0, where all outputs would be the same");
    if (p.max_tokens == 0) return fail("max_tokens is 0, expected at least 1");
    if (p.min_tokens > p.max_tokens)
        return fail("min_tokens is " + std::to_string(p.min_tokens) + ", more than max_tokens of " +
                    std::to_string(p.max_tokens));
    if (p.stop_token_ids.size() > kMostStopIds)
        return fail(std::to_string(p.stop_token_ids.size()) + " stop_token_ids, expected at most " +
                    std::to_string(kMostStopIds));
    if (p.stop.size() > 64) return fail(std::to_string(p.stop.size()) + " stop strings, expected at most 64");
    for (const std::string& s : p.stop)
        if (s.empty() || s.size() > 4096)
            return fail("a stop string of " + std::to_string(s.size()) + " bytes, expected 1 to 4096");
    for (const auto& [token, bias] : p.logit_bias) {
        if (token < 0 || static_cast<uint32_t>(token) >= vocab)
            return fail("logit_bias for token " + std::to_string(token) + ", expected 0 to " +
                        std::to_string(vocab - 1));
        PB_CHECK(check_range("logit_bias", bias, -1e4, 1e4));
    }
    if (p.mirostat != 0 && p.mirostat != 2)
        return fail("mirostat is " + std::to_string(p.mirostat) + ", expected 0 (off) or 2 (its second version)");
    for (const TokenId t : p.dry_breakers)
        if (t < 0 || static_cast<uint32_t>(t) >= vocab)
            return fail("dry_breakers has token " + std::to_string(t) + ", expected 0 to " + std::to_string(vocab - 1));
    return {};
}

namespace {

pb_sampling_params wire_params(const SamplingParams& p, const std::vector<pb_logit_bias>& bias) {
    pb_sampling_params out{};
    out.struct_size = sizeof out;
    out.top_k = p.top_k;
    out.temperature = p.temperature;
    out.top_p = p.top_p;
    out.min_p = p.min_p;
    out.repetition_penalty = p.repetition_penalty;
    out.presence_penalty = p.presence_penalty;
    out.frequency_penalty = p.frequency_penalty;
    out.logprobs = p.logprobs.value_or(p.best_of > p.n ? 0 : -1); // which cumulative_logprob is made of
    out.logit_bias_count = static_cast<uint32_t>(bias.size());
    out.logit_bias = bias.data();
    out.dry_breakers = p.dry_breakers.data();
    out.dry_breaker_count = static_cast<uint32_t>(p.dry_breakers.size());
    out.dry_multiplier = p.dry_multiplier;
    out.dry_base = p.dry_base;
    out.dry_allowed_length = p.dry_allowed_length;
    out.dry_range = p.dry_range;
    out.top_n_sigma = p.top_n_sigma;
    out.typical_p = p.typical_p;
    out.xtc_probability = p.xtc_probability;
    out.xtc_threshold = p.xtc_threshold;
    out.mirostat_tau = p.mirostat > 0 ? p.mirostat_tau : 0;
    out.mirostat_eta = p.mirostat_eta;
    return out;
}

// What its rows before the last ask of a sampler.
pb_sampling_params params_of_prompt(const SamplingParams& p) {
    pb_sampling_params out = wire_params({.temperature = 0}, {});
    out.logprobs = p.prompt_logprobs.value_or(-1);
    return out;
}

Result<> check_synthetic(const SamplingParams& p) {
    const std::pair<const char*, bool> of_the_model[] = {{"logprobs", p.logprobs.has_value()},
                                                         {"prompt_logprobs", p.prompt_logprobs.has_value()},
                                                         {"logits_statistics", p.logits_statistics},
                                                         {"best_of", p.best_of > 0},
                                                         {"beam_width", p.beam_width > 0},
                                                         {"bad_words", !p.bad_words.empty()},
                                                         {"allowed_token_ids", p.allowed_token_ids.has_value()},
                                                         {"structured_outputs", p.structured_outputs.has_value()}};
    for (const auto& [name, given] : of_the_model)
        if (given)
            return fail(StatusCode::kUnsupported, std::string(name) +
                        " with rejection_sample_method: synthetic, whose texts are not the model's");
    return {};
}

}  // namespace

Result<RequestId> Engine::State::add(Request request) {
    SamplingParams& sampling = request.sampling;
    const uint32_t vocab = facts.vocab_size;
    std::sort(sampling.dry_breakers.begin(), sampling.dry_breakers.end());
    PB_CHECK(check_sampling(sampling));
    const TokenText text = script && tokenizer ? TokenText::kScripted : TokenText::kMadeUp;
    if (facts.simulated) PB_CHECK(check_simulated(sampling, text));
    else PB_CHECK(check_accepted(wire_params(sampling, {})));
    if (facts.synthetic_acceptance) PB_CHECK(check_synthetic(sampling));
    if (request.prompt.empty()) return fail("the prompt is empty");
    const size_t length = request.prompt.size() + sampling.max_tokens;
    if (request.prompt.size() >= facts.max_model_len || length > facts.max_model_len)
        return fail("a prompt of " + std::to_string(request.prompt.size()) + " tokens and max_tokens of " +
                    std::to_string(sampling.max_tokens) + " exceed max_model_len of " +
                    std::to_string(facts.max_model_len));
    for (const TokenId t : request.prompt)
        if (t < 0 || static_cast<uint32_t>(t) >= vocab)
            return fail("prompt token " + std::to_string(t) + ", expected 0 to " + std::to_string(vocab - 1));
    if (request.cache_salt.size() > kLongestSalt)
        return fail("cache_salt has " + std::to_string(request.cache_salt.size()) + " bytes, expected at most " +
                    std::to_string(kLongestSalt));
    if (!sampling.stop.empty() && !tokenizer) return fail(StatusCode::kUnsupported, "stop strings need a tokenizer");
    if (sampling.prompt_logprobs && !settings.enable_chunked_prefill && request.prompt.size() > most_prompt_rows())
        return fail("prompt_logprobs of a prompt of " + std::to_string(request.prompt.size()) +
                    " tokens, more than the " + std::to_string(most_prompt_rows()) +
                    " rows of a step, without enable_chunked_prefill");
    const uint64_t now = clock.now_ns();
    if (settings.max_waiting > 0 && request.arrival_ns <= now) { // those that are to come are judged when they do
        const auto arrived = pending.upper_bound({now, UINT64_MAX}); // since the last step
        if (is_full(static_cast<size_t>(std::distance(pending.begin(), arrived))))
            return fail(StatusCode::kExhausted, full_queue());
    }

    std::shared_ptr<grammar::Grammar> grammar;
    if (sampling.structured_outputs) {
        PB_TRY(grammar, grammar_of(*sampling.structured_outputs));
    }

    PB_CHECK(check_statistics(sampling));
    const pb_sampling_params prompt_params = params_of_prompt(sampling);
    if (!facts.simulated && sampling.prompt_logprobs) PB_CHECK(check_accepted(prompt_params));
    PB_TRY(TokenRules rules, token_rules(sampling));
    if (sampling.beam_width > 0) {
        PB_CHECK(check_beams(request));
        pb_sampling_params params = wire_params(sampling, {});
        params.logprobs = static_cast<int32_t>(candidates_wanted(sampling, eos, vocab));
        if (!facts.simulated) PB_CHECK(check_accepted(params));
        request.on_output = [n = sampling.n, tell = std::move(request.on_output)](const RequestOutput& out) {
            if (tell && out.index < n) tell(out);
        };
    } else if (const uint32_t count = sequences_of(sampling); count > sampling.n) {
        request.on_output = best_of(sampling.n, count, std::move(request.on_output));
    }

    auto made = make_sequence(std::move(request), 0);
    Sequence& s = *made;
    s.rules = std::move(rules);
    s.prompt_params = prompt_params;
    if (grammar) structure(s, std::move(grammar));
    if (s.request.arrival_ns == 0) s.request.arrival_ns = now;
    pending.emplace(s.request.arrival_ns, s.id);
    sequences.emplace(s.id, std::move(made));
    if (sequences_of(s.request.sampling) > 1) add_siblings(s);
    return s.id;
}

// By the sampler, and by who may have to take its place again.
Result<> Engine::State::check_accepted(const pb_sampling_params& params) const {
    Result<> done;
    sampler.each([&](const host::Component& c) {
        if (done && host::table_of<pb_sampler>(c).accepts) done = host::checked<&pb_sampler::accepts>(c, &params);
    });
    return done;
}

std::unique_ptr<Sequence> Engine::State::make_sequence(Request request, uint32_t index) {
    const RequestId id = next_id++;
    StopMatcher stops = stops_of(request.sampling);
    auto sequence = std::make_unique<Sequence>(id, std::move(request), std::move(stops));
    Sequence& s = *sequence;
    const SamplingParams& params = s.request.sampling;
    s.tokens = s.request.prompt;
    if (!s.request.cache_salt.empty()) s.salt = kv::root_key(s.request.cache_salt);
    s.prompt_count = static_cast<uint32_t>(s.tokens.size());
    for (const auto& [token, bias] : params.logit_bias) s.bias.push_back({token, bias});
    s.params = wire_params(params, s.bias);
    if (params.seed) {
        s.seed = *params.seed + index;
    } else {
        const PhiloxBlock bits = draw(settings.seed, id, Stream::kSample, 0);
        s.seed = uint64_t{bits[0]} << 32 | bits[1];
    }
    if (tokenizer) s.detokenizer = std::make_unique<text::Detokenizer>(tokenizer);
    s.index = index;
    s.delta = delta_of(s);
    return sequence;
}

bool Engine::State::is_full(size_t arrived) const {
    return settings.max_waiting > 0 && waiting.records().size() + arrived >= settings.max_waiting;
}

std::string Engine::State::full_queue() const {
    return "the queue is full: max_waiting is " + std::to_string(settings.max_waiting);
}

void Engine::State::enqueue(Sequence& s) {
    s.place = Place::kWaiting;
    s.ticket = waiting.push_back(waiting_record(s));
    waiting_tokens += s.confirmed();
    s.announced = true;
    announce(waiting.records().back());
}

void Engine::State::leave_queue(Sequence& s) {
    unwatch_prefix(s);
    waiting.erase(s.ticket);
    waiting_tokens -= s.confirmed();
}

void Engine::State::announce(const pb_sequence& record) {
    scheduler.each([&](const host::Component& c) {
        if (host::table_of<pb_scheduler>(c).arrived) host::call<&pb_scheduler::arrived>(c, &record);
    });
}

void Engine::State::finish(Sequence& s, FinishReason reason, std::string why) {
    if (s.place == Place::kPending) pending.erase({s.request.arrival_ns, s.id});
    if (s.place == Place::kWaiting) leave_queue(s);
    if (s.place == Place::kRunning) running.erase(std::find(running.begin(), running.end(), &s));
    s.drop_drafts();
    kv->drop(s.swapped);
    if (s.in_flight > 0) leave_flight(s);
    else if (!stays_behind(s)) kv->release(s.table);
    s.delta.finish = reason;
    s.delta.stop_reason = std::move(why);
    close_delta(s);
    s.delta.cached_tokens = s.cached_tokens;
    s.delta.preemptions = s.preemptions;
    s.delta.first_scheduled_ns = s.first_scheduled_ns;
    if (s.announced)
        scheduler.each([&](const host::Component& c) {
            if (host::table_of<pb_scheduler>(c).finished) host::call<&pb_scheduler::finished>(c, s.id, s.outputs());
        });
    if (proposer && proposer.table->finished) proposer.call<&pb_proposer::finished>(s.id);
    report.finished += 1;
    if (s.holds_siblings) release_siblings(s);
    if (sequences_of(s.request.sampling) > 1) {
        leave_siblings(s);
        refresh_siblings(s.group);
    }
}

// The text that is still held back, and what is said of the output as a whole.
void Engine::State::close_delta(Sequence& s) {
    if (s.detokenizer && s.stops.matched().empty()) {
        s.delta.text += s.stops.add(s.detokenizer->finish());
        s.delta.text += s.stops.flush();
    }
    if (s.params.logprobs >= 0) s.delta.cumulative_logprob = s.sums.logprob;
    const LogitsStatistics& sum = s.sums.logits;
    const double rows = s.sums.logits_rows;
    s.delta.logits.reset();
    if (rows > 0) s.delta.logits = {sum.entropy / rows, sum.max_logit / rows, sum.first_share / rows};
}

bool Engine::State::is_aborted(const Sequence& s) const { return std::ranges::find(aborts, s.group) != aborts.end(); }

void Engine::State::abort(RequestId id) {
    if (in_step) { // from a callback: after the step
        aborts.push_back(id);
        return;
    }
    end(id, FinishReason::kAbort, "");
}

void Engine::State::end(RequestId id, FinishReason reason, const std::string& why) {
    // The first one last, since it holds others. Callbacks may end some too.
    for (auto at = siblings.find(id); at != siblings.end(); at = siblings.find(id))
        end_sequence(*at->second.back(), reason, why);
    if (const auto at = sequences.find(id); at != sequences.end() && at->second->group == id)
        end_sequence(*at->second, reason, why);
}

void Engine::State::end_sequence(Sequence& s, FinishReason reason, const std::string& why) {
    finish(s, reason, why);
    s.delta.time_ns = clock.now_ns();
    const auto owned = sequences.extract(s.id);
    if (s.request.on_output) s.request.on_output(s.delta);
}

void Engine::State::fail_all(const std::string& reason) {
    std::vector<std::unique_ptr<Sequence>> ended;
    std::vector<RequestId> ids;
    for (const auto& [id, sequence] : sequences) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (const RequestId id : ids) {
        Sequence& s = *sequences.at(id);
        if (s.delta.finish == FinishReason::kNone)
            finish(s, FinishReason::kError, reason);  // else it ended in this step
        s.delta.time_ns = clock.now_ns();
        ended.push_back(std::move(sequences.at(id)));
    }
    sequences.clear();
    ended_beams.clear();
    drop_branches();
    runner->abandon();
    clear(flying);
    clear(launched);
    for (const auto& s : ended)
        if (s->request.on_output) s->request.on_output(s->delta);
}

}  // namespace patchbay::engine
