#include "scenario/requests.hpp"

#include <utility>

#include "patchbay/sdk/philox.hpp"

namespace patchbay::scenario {

void Requests::add(const Arrival& a, engine::Engine& engine, Course& course) {
    const auto id = engine.add_request(made_of(a));
    for (uint32_t i = 0; i < a.sequences(); ++i) {
        known_[a.name_of(i)].id = id ? *id + i : 0;
        if (id) names_[*id + i] = a.name_of(i);
        if (id && a.beam_width > 0) candidates_[*id + i] = candidates_of(a, eos_);
    }
    const std::string expected = a.refused.empty() ? "it is added" : "it is refused: " + a.refused;
    if (id && !a.refused.empty()) course.differ(a.origin, "add " + a.id, expected, "it is added");
    if (!id && (a.refused.empty() || id.error().find(a.refused) == std::string::npos))
        course.differ(a.origin, "add " + a.id, expected, "it is refused: " + id.error());
}

engine::Request Requests::made_of(const Arrival& a) {
    constexpr uint64_t kMs = 1'000'000; // ns
    engine::Request r;
    r.prompt = tokens_of(a.prompt);
    r.priority = a.priority;
    r.tenant = a.tenant;
    r.arrival_ns = a.arrival_ms ? start_ns_ + a.arrival_ms * kMs : 0;
    r.deadline_ns = a.deadline_ms ? start_ns_ + a.deadline_ms * kMs : 0;
    r.expected_output_tokens = a.expected_output_tokens;
    r.cache_salt = a.salt;
    r.sampling.n = a.n;
    r.sampling.beam_width = a.beam_width;
    r.sampling.skip_reading_prefix_cache = a.skip_reading_prefix_cache;
    r.sampling.max_tokens = a.max_tokens;
    r.sampling.min_tokens = a.min_tokens;
    r.sampling.stop_token_ids = a.stop_token_ids;
    r.sampling.ignore_eos = a.ignore_eos;
    r.sampling.stop = a.stop;
    r.sampling.include_stop_str_in_output = a.include_stop_str_in_output;
    r.sampling.structured_outputs = a.structured_outputs;
    r.on_output = [this, &a](const engine::RequestOutput& out) { note(a.name_of(out.index), out); };
    return r;
}

Tokens Requests::tokens_of(const Prompt& prompt) const {
    Tokens out;
    for (uint32_t i = 0; i < prompt.made_up; ++i) // a pure function of which request it is and where
        out.push_back(static_cast<TokenId>(draw(known_.size(), i, Stream::kSample, 0)[0] % kVocabSize));
    out.insert(out.end(), prompt.times, prompt.repeated);
    out.insert(out.end(), prompt.tokens.begin(), prompt.tokens.end());
    return out;
}

void Requests::note(const std::string& name, const engine::RequestOutput& out) {
    Known& known = known_.at(name);
    known.output.insert(known.output.end(), out.tokens.begin(), out.tokens.end());
    known.text += out.text;
    if (out.finish == engine::FinishReason::kNone) return;
    known.finish = out.finish;
    known.stop_reason = out.stop_reason;
    known.cached_tokens = out.cached_tokens;
    known.preemptions = out.preemptions;
    finished_[name] = out.finish;
}

}  // namespace patchbay::scenario
