#include "engine/groups/beams.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "config/step_limits.hpp"

namespace patchbay::engine {
namespace {

Result<> refuse_beside_beams(const SamplingParams& p) {
    const std::pair<const char*, bool> others[] = {
        {"best_of", p.best_of > 0},
        {"structured_outputs", p.structured_outputs.has_value()},
        {"bad_words", !p.bad_words.empty()},
        {"allowed_token_ids", p.allowed_token_ids.has_value()},
        {"logit_bias", !p.logit_bias.empty()},
        {"top_k", p.top_k > 0},
        {"top_p", p.top_p != 1},
        {"min_p", p.min_p != 0},
        {"repetition_penalty", p.repetition_penalty != 1},
        {"presence_penalty", p.presence_penalty != 0},
        {"frequency_penalty", p.frequency_penalty != 0},
        {"dry_multiplier", p.dry_multiplier != 0},
        {"top_n_sigma", p.top_n_sigma != 0},
        {"typical_p", p.typical_p != 1},
        {"xtc_probability", p.xtc_probability != 0},
        {"mirostat", p.mirostat != 0},
        {"repetition_detection", p.repetition_detection.max_pattern_size > 0},
        {"logits_statistics", p.logits_statistics}};
    for (const auto& [name, given] : others)
        if (given) return fail(std::string(name) + " with beam_width, whose candidates are those of the raw logits");
    return {};
}

// Tokens whose KV a beam has in common with the first one.
uint32_t shared_with_first(const BeamGroup& g, size_t beam) {
    const Sequence& s = *g.slots[beam];
    const auto same = std::ranges::mismatch(g.slots[0]->tokens, s.tokens).in2 - s.tokens.begin();
    return std::min(static_cast<uint32_t>(same), s.confirmed() - 1);
}

// Of a request: those that it names, and those of the model.
std::vector<TokenId> end_tokens(const SamplingParams& p, const std::vector<TokenId>& eos) {
    std::vector<TokenId> ends = p.stop_token_ids;
    if (!p.ignore_eos) ends.insert(ends.end(), eos.begin(), eos.end());
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends;
}

constexpr uint32_t kMaxCandidates = config::kMaxBeamCandidates;

uint32_t left_to_compute(const pb_sequence& r) { // as scheduler.h says
    return r.prompt_tokens + r.output_tokens + r.draft_tokens - r.computed_tokens - r.in_flight;
}

}  // namespace

BeamSearches::BeamSearches(const BeamLimits& limits, Sequences& sequences, kv::KvCache& kv, DraftKvTable& draft_kv,
                           StepContext& context)
    : limits_(limits), sequences_(sequences), kv_(kv), draft_kv_(draft_kv), context_(context),
      no_windows_(kv.shape().windows().size(), 0) {}

BeamGroup* BeamSearches::find(const Sequence& s) const {
    if (groups_.empty() || !s.is_beam()) return nullptr;
    const auto at = groups_.find(s.group);
    return at == groups_.end() ? nullptr : at->second.get();
}

bool BeamSearches::any_running() const {
    if (groups_.empty()) return false;
    return std::ranges::any_of(sequences_.running(), [](const Sequence* s) { return s->is_beam(); });
}

uint32_t BeamSearches::needed_from(const Sequence& s) const {
    uint32_t out = UINT32_MAX;
    const BeamGroup* const g = s.ended ? nullptr : find(s); // its search may be gone
    if (!g || g->slots[0] != &s) return out;
    for (size_t i = 1; i < g->search.open().size(); ++i)
        if (g->slots[i]->kv.table.held == 0) out = std::min(out, shared_with_first(*g, i));
    return out;
}

uint32_t BeamSearches::candidates_wanted(const SamplingParams& p) const {
    Hypothesis empty{.stops = StopMatcher({}, StopMatcher::Keep::kBefore)};
    const uint32_t wanted = BeamSearch({p, end_tokens(p, limits_.eos), p.stop_token_ids}, std::move(empty)).wanted();
    return std::min(std::max(wanted, static_cast<uint32_t>(p.logprobs.value_or(0))), limits_.vocab_size);
}

Result<> BeamSearches::check(const Request& r) const {
    const SamplingParams& p = r.sampling;
    PB_CHECK(refuse_beside_beams(p));
    const std::string width = "beam_width is " + std::to_string(p.beam_width);
    if (p.beam_width > kMaxOutputs) return fail(width + ", expected 0 to " + std::to_string(kMaxOutputs));
    if (p.n > p.beam_width) return fail(width + ", less than n of " + std::to_string(p.n));
    if (p.beam_width > limits_.settings.max_num_seqs)
        return fail(width + ", more than max_num_seqs of " + std::to_string(limits_.settings.max_num_seqs) +
                    ", and beams run together");
    if (const uint32_t wanted = candidates_wanted(p); wanted > kMaxCandidates) {
        const uint32_t logprobs = p.logprobs.value_or(0);
        const std::string why = wanted == logprobs ? "logprobs of " + std::to_string(logprobs)
                                                   : std::to_string(end_tokens(p, limits_.eos).size()) +
                                                         " tokens that end an output";
        return fail(width + " with " + why + ": " + std::to_string(wanted) +
                    " candidates of each beam, expected at most " + std::to_string(kMaxCandidates));
    }
    if (kv_.shape().state_pages() > 0)
        return fail(StatusCode::kUnsupported,
                    "beam_width with a model whose layers keep states, which cannot be shared");
    // The last token is never computed, but for a draft model.
    const uint64_t tokens = r.prompt.size() + p.max_tokens, computed = tokens - !draft_kv_.has_draft_model();
    const uint64_t pages =
        pages_of_beams().at_most(r.prompt.size(), computed, p.beam_width, limits_.settings.enable_chunked_prefill);
    if (pages > kv_.pool().total())
        return fail(width + ": beams of up to " + std::to_string(tokens) + " tokens may take " +
                    std::to_string(pages) + " blocks, of which there are " + std::to_string(kv_.pool().total()));
    return {};
}

void BeamSearches::add(const std::vector<Sequence*>& slots) {
    const Sequence& first = *slots.front();
    const SamplingParams& p = first.request.sampling;
    Hypothesis empty{.stops = first.output.stops};
    if (first.output.detokenizer) empty.detokenizer = *first.output.detokenizer;
    BeamSearch search({p, end_tokens(p, limits_.eos), p.stop_token_ids, first.request.ends_after}, std::move(empty));
    auto g = std::make_unique<BeamGroup>(BeamGroup{std::move(search), slots, {}, 0});
    g->candidates.resize(1);
    const uint32_t wanted = candidates_wanted(p);
    for (Sequence* s : slots) {
        s->output.detokenizer.reset(); // each hypothesis has its own
        s->sampling.params.temperature = 0;
        s->sampling.params.logprobs = wanted + 1;
    }
    groups_.emplace(first.id, std::move(g));
}

// A draft model may be behind with what it computes, and pages stay until it has.
BeamPages BeamSearches::pages_of_beams() const {
    return {draft_kv_.has_draft_model() ? std::span<const uint32_t>(no_windows_) : kv_.shape().windows(),
            kv_.shape().block_size()};
}

// Pages that a search which comes back takes until each beam has its own again. At most what check() counts.
uint64_t BeamSearches::pages_to_come(const BeamGroup& g) const {
    const BeamPages pages = pages_of_beams();
    const Sequence& first = *g.slots[0];
    const size_t width = g.search.open().size();
    uint64_t unlike = 0; // blocks of beams that differ from the first one
    for (size_t i = 1; i < width; ++i) {
        const Sequence& s = *g.slots[i];
        const bool is_back = s.kv.table.held > 0 && (s.idle || s.decoding());
        if (!is_back) unlike += pages.blocks(s.confirmed()) - shared_with_first(g, i) / kv_.shape().block_size();
    }
    if (unlike == 0) return 0;
    const uint32_t kept_from = std::min(needed_from(first), first.confirmed() - 1);
    uint64_t all = 0, alone = 0;
    for (size_t group = 0; group < pages.groups(); ++group) {
        const uint64_t kept = pages.of_first(group, kept_from, first.confirmed());
        all += std::min(kept + unlike, pages.of_all(group, first.prompt_count, first.confirmed(), width));
        alone += limits_.settings.enable_chunked_prefill ? kept : pages.blocks(first.confirmed());
    }
    const uint64_t most = std::max(all, alone);
    return most - std::min(most, pages_held(g));
}

// For all beams of a search that comes back: after its first one those that differ from it compute what they have of
// their own. Without pages for that it would be preempted anew in the next step, and a policy that prefers prompts
// would let nothing else run between. At most what check() counts, so there are as many when nothing else runs.
bool BeamSearches::has_room(const Sequence& s) const {
    const size_t running = sequences_.running().size();
    const BeamGroup* const g = find(s);
    if (!g) return running < limits_.settings.max_num_seqs;
    if (running + g->slots.size() > limits_.settings.max_num_seqs) return false;
    if (g->search.open().size() < 2) return true;
    uint64_t pages = pages_to_come(*g);
    for (const auto& [id, other] : groups_) // that come back at this time: each is to have its own
        if (other.get() != g && other->slots[0]->place == Place::kRunning) pages += pages_to_come(*other);
    return pages <= kv_.pool().free();
}

// Beams short of seats or blocks are not shown: a scheduler, which sees one sequence, could plan them before all
// others, step by step, and nothing would run. Nor is what came later, or they might wait for ever.
std::span<const pb_sequence> BeamSearches::with_seats(std::span<const pb_sequence> waiting) {
    if (groups_.empty()) return waiting;
    with_seats_.clear();
    for (const pb_sequence& r : waiting) {
        const Sequence& s = *sequences_.find(r.id);
        if (s.is_beam() && !has_room(s)) break;
        with_seats_.push_back(r);
    }
    return with_seats_;
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
        const uint32_t shared = shared_with_first(g, i);
        const bool shares = kv_.tables().fork(first.kv.table, shared, s.kv.table);
        free_outside_window(s.kv.table, shared);
        s.computed = shares ? shared : kv_.prefixes().adopt(s.kv.table, s.tokens, s.kv.salt);
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
        delta.logprobs = h.logprobs;
        delta.text = h.text;
        delta.stop_token = h.stop_token;
        delta.beam_score = h.score;
        s->output.sums.logprob = h.sum;
        out.push_back({s, h.finish, h.stop_reason});
    }
    return out;
}

// A page that several running beams are about to write to is copied by all of them but one: room for it is to be
// counted as often.
void BeamSearches::charge_copies(std::span<pb_sequence> records) const {
    if (groups_.empty()) return;
    std::unordered_map<kv::BlockId, uint32_t> writers;
    for (size_t i = 0; i < records.size(); ++i) {
        const Sequence& s = *sequences_.running()[i];
        const uint32_t block = s.computed / kv_.shape().block_size();
        if (!s.is_beam() || s.idle || block >= s.kv.table.blocks) continue;
        const kv::BlockId page = s.kv.table.pages[0][block];
        if (++writers[page] < kv_.pool().references(page)) records[i].tokens_until_next_page = 0;
    }
}

// Windows free pages after a step only: beams that compute more than their newest token are shown with so many as there
// are pages for, at least those up to the end of a block. Of a sequence that lacked some, a scheduler would preempt
// others of its search, and so all of it, time and again. A prompt may drive out what is not of its search, so it gets
// what there is when nothing else runs: what is left of it decides in some schedulers who gives way.
void BeamSearches::limit_chunks(std::span<pb_sequence> records) const {
    if (groups_.empty()) return;
    const uint32_t size = kv_.shape().block_size();
    const uint64_t groups = kv_.shape().windows().size();
    uint64_t left = kv_.pool().free() / groups; // blocks that no sequence takes with its next token
    for (const pb_sequence& r : records)
        if (left_to_compute(r) > 0 && r.tokens_until_next_page == 0 && left > 0) left -= 1;
    for (pb_sequence& r : records) {
        const uint32_t tokens = std::min(left_to_compute(r), max_chunk());
        // A page that is to be copied ends with its block, too.
        const uint32_t near = r.tokens_until_next_page > 0 ? r.tokens_until_next_page : size - r.computed_tokens % size;
        const auto at = groups_.find(r.group);
        if (at == groups_.end() || tokens <= near) continue;
        const BeamGroup& g = *at->second;
        const uint64_t wanted = (tokens - near + size - 1) / size;
        uint64_t given = std::min(wanted, left);
        if (given < wanted && g.search.open().size() < 2) {
            const uint64_t alone = (kv_.pool().total() - pages_held(g)) / groups, first = r.tokens_until_next_page == 0;
            given = std::min(wanted, alone - std::min(alone, first));
        }
        left -= std::min(left, given);
        const uint64_t shown = std::min<uint64_t>(left_to_compute(r), near + given * size);
        if (given < wanted) r.computed_tokens += left_to_compute(r) - static_cast<uint32_t>(shown);
    }
}

// Of a prompt, or of what is computed anew, in a step.
uint32_t BeamSearches::max_chunk() const {
    const config::EngineSettings& s = limits_.settings;
    if (!s.enable_chunked_prefill) return UINT32_MAX;
    const uint32_t threshold = s.long_prefill_token_threshold;
    return threshold > 0 ? std::min(threshold, s.max_num_batched_tokens) : s.max_num_batched_tokens;
}

uint64_t BeamSearches::pages_held(const BeamGroup& g) const {
    std::unordered_set<kv::BlockId> pages;
    for (const Sequence* s : g.slots) {
        const kv::BlockTable& t = s->kv.table;
        for (size_t group = 0; t.held > 0 && group < t.pages.size(); ++group)
            pages.insert(t.pages[group].begin() + t.freed_prefix[group], t.pages[group].end());
    }
    return pages.size();
}

}  // namespace patchbay::engine
