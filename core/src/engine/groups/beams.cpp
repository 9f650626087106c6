#include "engine/groups/beams.hpp"

#include <algorithm>
#include <utility>

#include "base/refusals.hpp"
#include "config/engine_config.hpp"
#include "config/step_limits.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/output/output_text.hpp"
#include "engine/placement/placed.hpp"
#include "engine/request/parameters.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "kv/kv_cache.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::engine {
namespace {

// Of a request: those that it names, and those of the model.
std::vector<TokenId> end_tokens(const SamplingParams& p, const std::vector<TokenId>& eos) {
    std::vector<TokenId> ends = p.stop_token_ids;
    if (!p.ignore_eos) ends.insert(ends.end(), eos.begin(), eos.end());
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends;
}

// Of them those that are a stop reason (see Outputs).
std::vector<TokenId> named_ends(const SamplingParams& p, const BeamLimits& limits) {
    const std::optional<TokenId> own = limits.tokenizer ? limits.tokenizer->eos() : std::nullopt;
    if (!own) return p.stop_token_ids;
    std::vector<TokenId> ends = end_tokens(p, limits.eos);
    if (!p.ignore_eos) std::erase(ends, *own);
    return ends;
}

constexpr uint32_t kMaxCandidates = config::kMaxBeamCandidates;

}  // namespace

BeamSearches::BeamSearches(const BeamLimits& limits, Sequences& sequences, kv::KvCache& kv, DraftKvTable& draft_kv,
                           StepContext& context)
    : limits_(limits), sequences_(sequences), kv_(kv), draft_kv_(draft_kv), context_(context),
      room_(limits.settings, sequences, kv, draft_kv, groups_) {}

BeamGroup* BeamSearches::find(const Sequence& s) const { return find_group(groups_, s); }

bool BeamSearches::any_running() const {
    if (groups_.empty()) return false;
    return std::ranges::any_of(sequences_.running(), [](const Sequence* s) { return s->is_beam(); });
}

uint32_t BeamSearches::needed_from(const Sequence& s) const {
    const BeamGroup* const g = s.ended ? nullptr : find(s); // its search may be gone
    return g && g->slots[0] == &s ? g->needed_from() : UINT32_MAX;
}

uint32_t BeamSearches::candidates_wanted(const SamplingParams& p) const {
    Hypothesis empty{.stops = StopMatcher({}, StopMatcher::Keep::kBefore)};
    const uint32_t wanted = BeamSearch({p, end_tokens(p, limits_.eos), {}}, std::move(empty)).wanted();
    return std::min(std::max(wanted, static_cast<uint32_t>(p.logprobs.value_or(0))), limits_.vocab_size);
}

Result<> BeamSearches::check(const Request& r) const {
    const SamplingParams& p = r.sampling;
    if (const char* const name = first_used(p, &ParameterInfo::refused_with_beams))
        return unsupported(std::string(name) + " with beam_width, whose candidates are those of the raw logits");
    const std::string width = "beam_width is " + std::to_string(p.beam_width);
    if (p.beam_width > kMaxOutputs) return invalid(width + ", expected 0 to " + std::to_string(kMaxOutputs));
    if (p.n > p.beam_width) return invalid(width + ", less than n of " + std::to_string(p.n));
    if (p.beam_width > limits_.settings.max_num_seqs)
        return invalid(width + ", more than max_num_seqs of " + std::to_string(limits_.settings.max_num_seqs) +
                       ", and beams run together");
    if (const uint32_t wanted = candidates_wanted(p); wanted > kMaxCandidates) {
        const uint32_t logprobs = p.logprobs.value_or(0);
        const std::string why = wanted == logprobs ? "logprobs of " + std::to_string(logprobs)
                                                   : std::to_string(end_tokens(p, limits_.eos).size()) +
                                                         " tokens that end an output";
        return invalid(width + " with " + why + ": " + std::to_string(wanted) +
                       " candidates of each beam, expected at most " + std::to_string(kMaxCandidates));
    }
    if (kv_.shape().state_pages() > 0)
        return fail(StatusCode::kUnsupported,
                    "beam_width with a model whose layers keep states, which cannot be shared");
    const uint64_t tokens = r.prompt.size() + p.max_tokens;
    const uint64_t pages = room_.max_pages(r.prompt.size(), tokens, p.beam_width);
    if (pages > kv_.pool().total())
        return invalid(width + ": beams of up to " + std::to_string(tokens) + " tokens may take " +
                       std::to_string(pages) + " blocks, of which there are " + std::to_string(kv_.pool().total()));
    return {};
}

void BeamSearches::add(const std::vector<Sequence*>& slots) {
    const Sequence& first = *slots.front();
    const SamplingParams& p = first.request->sampling;
    Hypothesis empty{.stops = StopMatcher({}, StopMatcher::Keep::kBefore)};
    if (const OutputText* const text = first.output.text.get()) {
        empty.detokenizer = text->detokenizer;
        empty.stops = text->stops;
    }
    BeamSearch search({p, end_tokens(p, limits_.eos), named_ends(p, limits_), first.request->ends_after},
                      std::move(empty));
    auto g = std::make_unique<BeamGroup>(BeamGroup{std::move(search), slots, {}, 0});
    g->candidates.resize(1);
    const uint32_t wanted = candidates_wanted(p);
    for (Sequence* s : slots) {
        s->output.text.reset(); // each hypothesis has its own
        s->sampling.params.temperature = 0;
        s->sampling.params.logprobs = wanted + 1;
    }
    groups_.emplace(first.id, std::move(g));
}

// The first one was admitted: the others take their seats too. They have nothing to compute until it is done.
std::vector<Sequence*> BeamSearches::seat(const Sequence& first) {
    std::vector<Sequence*> unannounced;
    BeamGroup* const g = find(first);
    if (!g) return unannounced;
    for (Sequence* s : g->slots) {
        if (s->place == Place::kRunning) continue;
        s->idle = true;
        if (!std::exchange(s->record.admitted_once, true)) s->record.first_scheduled_ns = context_.report.start_ns;
        sequences_.run(*s);
        context_.report.work.admitted += 1;
        if (!std::exchange(s->announced, true)) unannounced.push_back(s);
    }
    return unannounced;
}

bool BeamSearches::preempted_now(const Sequence& s) const {
    const BeamGroup* const g = find(s);
    return g && g->preempted_at == context_.step;
}

void BeamSearches::may_be_placed(const Sequence& s) {
    if (BeamGroup* const g = find(s)) g->preempted_at = 0;
}

Sequence* BeamSearches::preempt(const Sequence& of) {
    BeamGroup& g = *find(of);
    if (g.preempted_at == context_.step) return nullptr; // the plan names several of them
    g.preempted_at = context_.step;
    g.candidates.assign(g.search.open().size(), {});
    for (Sequence* s : g.slots) {
        context_.report.preemption.preemptions += 1;
        context_.report.preemption.preempted_tokens += s->computed;
        sequences_.leave(*s);
        kv_.tables().release(s->kv.table);
        s->computed = 0;
        s->idle = false;
        s->record.preemptions += 1;
    }
    return g.slots[0];
}

std::optional<BeamSearches::Fault> BeamSearches::take(const Placed& item, const StepSamples& samples,
                                                      const std::string& sampler) {
    Sequence& s = *item.sequence;
    BeamGroup& g = *find(s);
    s.computed = item.confirmed;
    s.idle = true;
    const auto count = static_cast<int32_t>(s.sampling.params.logprobs) - 1;
    BeamSearch::Candidates found = samples.logprobs_of(item.first_row, count).top;
    const auto in_range = [&](const auto& c) {
        return c.first >= 0 && static_cast<uint32_t>(c.first) < limits_.vocab_size && c.second < 1; // no NaN
    };
    if (found.empty() || !std::ranges::all_of(found, in_range)) {
        context_.report.calls.sampler_faults += 1;
        context_.report.calls.sampler_breaches += 1;
        return Fault{sampler + " gave no log-probabilities"};
    }
    const auto slot = std::ranges::find(g.slots, &s) - g.slots.begin();
    g.candidates[static_cast<size_t>(slot)] = std::move(found);
    if (std::ranges::none_of(g.candidates, [](const auto& c) { return c.empty(); })) choose(g);
    else if (slot == 0) fork(g);
    return g.search.over() ? std::optional(Fault{}) : std::nullopt;
}

// Computed anew after a preemption: the first one is back, and the others share with it what their tokens have in
// common, at least the prompt.
void BeamSearches::fork(BeamGroup& g) {
    const Sequence& first = *g.slots[0];
    for (size_t i = 1; i < g.search.open().size(); ++i) {
        Sequence& s = *g.slots[i];
        if (!s.idle || s.kv.table.held > 0) continue; // it has its own
        s.idle = false;
        const uint32_t shared = g.shared_with_first(i);
        const bool shares = kv_.tables().fork(first.kv.table, shared, s.kv.table);
        free_outside_window(s.kv.table, shared);
        s.computed = shares ? shared : s.kv.reads_prefixes ? kv_.prefixes().adopt(s.kv.table, s.tokens, s.kv.salt) : 0;
        s.kv.table.salt = s.kv.salt;
        draft_kv_.forked(s, first);
        context_.report.work.forked += 1;
    }
}

void BeamSearches::choose(BeamGroup& g) {
    BeamSearch& search = g.search;
    search.step(g.candidates);
    if (search.over()) return;
    move(g, search.parents());
    for (size_t i = 0; i < search.open().size(); ++i) {
        Sequence& s = *g.slots[i];
        const std::vector<TokenId>& output = search.open()[i].tokens;
        s.tokens.resize(s.prompt_count);
        s.tokens.insert(s.tokens.end(), output.begin(), output.end());
        s.idle = false;
    }
    context_.report.work.sampled_tokens += static_cast<uint32_t>(search.open().size());
    g.candidates.assign(search.open().size(), {});
}

// Before others share it: they would keep what the one that had it frees.
void BeamSearches::free_outside_window(kv::BlockTable& table, uint32_t computed) {
    if (!draft_kv_.has_draft_model()) kv_.tables().free_outside_window(table, computed);
}

// KV of the beams that go on: the first that continues a beam takes its pages, others share them.
void BeamSearches::move(BeamGroup& g, const std::vector<uint32_t>& parents) {
    constexpr size_t kNone = SIZE_MAX;
    const uint32_t computed = g.slots[0]->computed;
    std::vector<kv::BlockTable> tables(parents.size());
    std::vector<DraftKv> drafts(parents.size());
    std::vector<size_t> heir(g.slots.size(), kNone);
    for (size_t i = 0; i < parents.size(); ++i) {
        Sequence& parent = *g.slots[parents[i]];
        drafts[i] = draft_kv_.continued(parent, computed);
        free_outside_window(parent.kv.table, computed); // the last to compute still has what its token saw
        size_t& taken = heir[parents[i]];
        if (taken == kNone) {
            tables[i] = std::exchange(parent.kv.table, {});
            taken = i;
        } else {
            kv_.tables().fork(tables[taken], computed, tables[i]); // all of it is there
            context_.report.work.forked += 1;
        }
    }
    for (Sequence* s : g.slots) kv_.tables().release(s->kv.table);
    for (size_t i = 0; i < g.slots.size(); ++i) {
        Sequence& s = *g.slots[i];
        s.idle = true;
        s.computed = i < parents.size() ? computed : 0;
        if (i >= parents.size()) continue;
        s.kv.table = std::move(tables[i]);
        draft_kv_.set(s, std::move(drafts[i]));
    }
}

// Its n best sequences become the outputs; or none, for a reason.
std::vector<BeamSearches::Ending> BeamSearches::end(const Sequence& of, const Fault& fault) {
    const BeamGroup& g = *find(of);
    const std::vector<Hypothesis>& best = g.search.complete();
    std::vector<Ending> out;
    for (Sequence* s : g.slots) {
        if (!fault.why.empty() || s->index >= best.size()) {
            out.push_back({s, FinishReason::kError,
                           fault.why.empty() ? "the search found fewer sequences" : fault.why});
            continue;
        }
        const Hypothesis& h = best[s->index];
        s->tokens.resize(s->prompt_count);
        s->tokens.insert(s->tokens.end(), h.tokens.begin(), h.tokens.end());
        RequestOutput& delta = s->output.delta;
        delta.tokens = h.tokens;
        delta.logprobs = g.search.logprobs_of(h);
        delta.text = h.text;
        delta.stop_token = h.stop_token;
        delta.beam_score = h.score;
        s->output.sums.logprob = h.sum;
        out.push_back({s, h.finish, h.stop_reason});
    }
    return out;
}

}  // namespace patchbay::engine
