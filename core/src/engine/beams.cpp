// Beam search in the engine. Each beam is a sequence. One that has computed its last token waits, with nothing to
// compute, until the others have theirs; then the search chooses, and the sequences take over the KV of the beams that
// go on: pages are shared, and copied by whoever writes first. Schedulers see running sequences of one `group`.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/simulation.hpp"
#include "engine/state.hpp"
#include "patchbay/sdk/philox.hpp"

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

// Blocks that a search which comes back takes until each beam has its own again.
uint64_t blocks_to_come(const BeamGroup& g, uint32_t block_size) {
    const auto blocks = [&](size_t i) { return (g.slots[i]->confirmed() + block_size - 1) / block_size; };
    uint64_t out = 0;
    for (size_t i = 1; i < g.search.open().size(); ++i)
        if (g.slots[i]->table.held == 0) out += blocks(i) - shared_with_first(g, i) / block_size;
    const uint32_t held = g.slots[0]->table.blocks;
    return out == 0 ? 0 : out + (blocks(0) > held ? blocks(0) - held : 0);
}

// Of a request: those that it names, and those of the model.
std::vector<TokenId> end_tokens(const SamplingParams& p, const std::vector<TokenId>& eos) {
    std::vector<TokenId> ends = p.stop_token_ids;
    if (!p.ignore_eos) ends.insert(ends.end(), eos.begin(), eos.end());
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends;
}

constexpr uint32_t kMostCandidates = 1024; // of a beam

}  // namespace

uint32_t needed_from(const Sequence& s) {
    uint32_t out = UINT32_MAX;
    const bool ended = s.delta.finish != FinishReason::kNone; // its search may be gone
    if (ended || !s.beams || s.beams->slots[0] != &s) return out;
    for (size_t i = 1; i < s.beams->search.open().size(); ++i) {
        const Sequence& other = *s.beams->slots[i];
        if (other.table.held == 0) out = std::min(out, shared_with_first(*s.beams, i));
    }
    return out;
}

uint32_t candidates_wanted(const SamplingParams& p, const std::vector<TokenId>& eos, uint32_t vocab_size) {
    Hypothesis empty{.stops = StopMatcher({}, StopMatcher::Keep::kBefore)};
    const uint32_t wanted = BeamSearch({p, end_tokens(p, eos), p.stop_token_ids}, std::move(empty)).wanted();
    return std::min(std::max(wanted, static_cast<uint32_t>(p.logprobs.value_or(0))), vocab_size);
}

Result<> Engine::State::check_beams(const Request& r) const {
    const SamplingParams& p = r.sampling;
    PB_CHECK(refuse_beside_beams(p));
    const std::string width = "beam_width is " + std::to_string(p.beam_width);
    if (p.beam_width > kMostOutputs) return fail(width + ", expected 0 to " + std::to_string(kMostOutputs));
    if (p.n > p.beam_width) return fail(width + ", less than n of " + std::to_string(p.n));
    if (p.beam_width > settings.max_num_seqs)
        return fail(width + ", more than max_num_seqs of " + std::to_string(settings.max_num_seqs) +
                    ", and beams run together");
    if (const uint32_t wanted = candidates_wanted(p, eos, facts.vocab_size); wanted > kMostCandidates)
        return fail(width + " with " + std::to_string(end_tokens(p, eos).size()) + " tokens that end an output: " +
                    std::to_string(wanted) + " candidates of each beam, expected at most " +
                    std::to_string(kMostCandidates));
    if (kv->state_pages() > 0)
        return fail(StatusCode::kUnsupported,
                    "beam_width with a model whose layers keep states, which cannot be shared");
    const uint64_t size = kv->block_size(), prompt = r.prompt.size() / size,
                   whole = (r.prompt.size() + p.max_tokens + size - 1) / size,
                   pages = (prompt + p.beam_width * (whole - prompt)) * kv->windows().size();
    if (pages > kv->pool().total())
        return fail(width + ": beams of up to " + std::to_string(r.prompt.size() + p.max_tokens) + " tokens may take " +
                    std::to_string(pages) + " blocks, of which there are " + std::to_string(kv->pool().total()));
    return {};
}

void Engine::State::add_beams(Sequence& first) {
    const SamplingParams& p = first.request.sampling;
    Hypothesis empty{.stops = first.stops};
    if (first.detokenizer) empty.detokenizer = *first.detokenizer;
    BeamSearch search({p, end_tokens(p, eos), p.stop_token_ids}, std::move(empty));
    auto g = std::make_unique<BeamGroup>(BeamGroup{std::move(search), siblings.at(first.id), {}, 0});
    g->candidates.resize(1);
    const uint32_t wanted = candidates_wanted(p, eos, facts.vocab_size);
    for (Sequence* s : g->slots) {
        s->beams = g.get();
        s->detokenizer.reset(); // each hypothesis has its own
        s->params.temperature = 0;
        s->params.logprobs = static_cast<int32_t>(wanted);
    }
    first.holds_siblings = false;
    beams.emplace(first.id, std::move(g));
}

// For all beams of a search that comes back: behind its first one those that differ from it compute what they have of
// their own. Without pages for that it would be preempted anew in the next step, and who prefers prompts would let
// nobody else run between. At most what check_beams counts, so there are as many when nothing else runs.
bool Engine::State::has_room(const Sequence& s) const {
    if (!s.beams) return running.size() < settings.max_num_seqs;
    const BeamGroup& g = *s.beams;
    if (running.size() + g.slots.size() > settings.max_num_seqs) return false;
    if (g.search.open().size() < 2) return true;
    uint64_t blocks = blocks_to_come(g, kv->block_size());
    for (const auto& [id, other] : beams) // that come back at this time: each is to have its own
        if (other.get() != &g && other->slots[0]->place == Place::kRunning)
            blocks += blocks_to_come(*other, kv->block_size());
    return blocks * kv->windows().size() <= kv->pool().free();
}

// Beams short of seats or blocks are not shown: a scheduler, which sees one sequence, could plan them before all
// others, step by step, and nothing would run. Nor is who came later, or they might wait for ever.
std::span<const pb_sequence> Engine::State::shown_waiting() {
    const auto all = waiting.records();
    if (beams.empty()) return all;
    seated_records.clear();
    for (const pb_sequence& r : all) {
        const Sequence& s = *sequences.at(r.id);
        if (s.beams && !has_room(s)) break;
        seated_records.push_back(r);
    }
    return seated_records;
}

// The first one was admitted: the others take their seats too. They have nothing to compute until it is done.
void Engine::State::seat_beams(BeamGroup& g) {
    for (Sequence* s : g.slots) {
        if (s->place == Place::kRunning) continue;
        s->place = Place::kRunning;
        s->idle = true;
        if (!std::exchange(s->admitted_once, true)) s->first_scheduled_ns = report.start_ns;
        running.push_back(s);
        report.admitted += 1;
        if (s->announced) continue;
        s->announced = true;
        announce(record_of(*s, {}, kv->block_size()));
    }
}

void Engine::State::preempt_beams(BeamGroup& g) {
    if (g.preempted_at == step) return; // the plan names several of them
    g.preempted_at = step;
    g.candidates.assign(g.search.open().size(), {});
    for (Sequence* s : g.slots) {
        report.preemptions += 1;
        report.preempted_tokens += s->computed;
        running.erase(std::find(running.begin(), running.end(), s));
        kv->release(s->table);
        s->computed = 0;
        s->idle = false;
        s->preemptions += 1;
        s->place = Place::kHeld;
    }
    Sequence& first = *g.slots[0];
    first.place = Place::kWaiting;
    first.ticket = waiting.push_front(waiting_record(first));
    waiting_tokens += first.confirmed();
}

// One beam's row is back.
void Engine::State::take_candidates(const Scheduled& item) {
    Sequence& s = *item.sequence;
    if (s.delta.finish != FinishReason::kNone || is_aborted(s)) return; // with another one, or with the step
    BeamGroup& g = *s.beams;
    s.computed = item.confirmed;
    s.idle = true;
    BeamSearch::Candidates found = facts.simulated ? made_up_candidates(s, sampled[item.first_row])
                                                   : logprobs_of(item.first_row, s.params.logprobs).top;
    const auto in_range = [&](const auto& c) {
        return c.first >= 0 && static_cast<uint32_t>(c.first) < facts.vocab_size && c.second < 1; // no NaN
    };
    if (found.empty() || !std::ranges::all_of(found, in_range)) {
        report.sampler_faults += 1;
        return end_beams(g, FinishReason::kError,
                         "sampler '" + std::string(sampler.current().type().name) + "' gave no log-probabilities");
    }
    const auto slot = std::find(g.slots.begin(), g.slots.end(), &s) - g.slots.begin();
    g.candidates[static_cast<size_t>(slot)] = std::move(found);
    if (std::ranges::none_of(g.candidates, [](const auto& c) { return c.empty(); })) choose_beams(g);
    else if (slot == 0) fork_beams(g);
}

// Where nothing is computed: the synthetic token before others, as if the model were nearly sure of it.
BeamSearch::Candidates Engine::State::made_up_candidates(const Sequence& s, TokenId likeliest) const {
    BeamSearch::Candidates out = {{likeliest, -0.125f}};
    for (uint32_t i = 1; i < static_cast<uint32_t>(s.params.logprobs); ++i) {
        const uint64_t seed = s.seed + i;
        const TokenId token = synthetic_token(seed, s.tokens.size(), facts.vocab_size, eos,
                                              s.request.sampling.stop_token_ids);
        const auto far = static_cast<float>(uniform(draw(seed, s.tokens.size(), Stream::kDraft, 0)[0]));
        if (std::ranges::none_of(out, [&](const auto& c) { return c.first == token; })) out.emplace_back(token, -far);
    }
    std::ranges::sort(out, [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
}

// Computed anew after a preemption: the first one is back, and the others share with it what their tokens have in
// common, at least the prompt.
void Engine::State::fork_beams(BeamGroup& g) {
    const Sequence& first = *g.slots[0];
    for (size_t i = 1; i < g.search.open().size(); ++i) {
        Sequence& s = *g.slots[i];
        if (!s.idle || s.table.held > 0) continue; // it has its own
        s.idle = false;
        const uint32_t shared = shared_with_first(g, i);
        s.computed = kv->fork(first.table, shared, s.table) ? shared : kv->adopt_prefix(s.table, s.tokens, s.salt);
        s.draft_kv = {.computed = std::min(s.computed, first.draft_kv.computed), .ahead = {},
                      .hidden = first.draft_kv.hidden, .made = {}};
        report.forked += 1;
    }
}

void Engine::State::choose_beams(BeamGroup& g) {
    BeamSearch& search = g.search;
    search.step(g.candidates);
    if (search.over()) return end_beams(g, FinishReason::kNone, "");
    move_beams(g, search.parents());
    for (size_t i = 0; i < search.open().size(); ++i) {
        Sequence& s = *g.slots[i];
        const std::vector<TokenId>& output = search.open()[i].tokens;
        s.tokens.resize(s.prompt_count);
        s.tokens.insert(s.tokens.end(), output.begin(), output.end());
        s.idle = false;
    }
    report.sampled_tokens += static_cast<uint32_t>(search.open().size());
    g.candidates.assign(search.open().size(), {});
}

// KV of the beams that go on: the first that continues a beam takes its pages, others share them.
void Engine::State::move_beams(BeamGroup& g, const std::vector<uint32_t>& parents) {
    constexpr size_t kNobody = SIZE_MAX;
    const uint32_t computed = g.slots[0]->computed;
    std::vector<kv::BlockTable> tables(parents.size());
    std::vector<DraftKv> drafts(parents.size());
    std::vector<size_t> heir(g.slots.size(), kNobody);
    for (size_t i = 0; i < parents.size(); ++i) {
        Sequence& parent = *g.slots[parents[i]];
        const DraftKv& known = parent.draft_kv;
        drafts[i] = {.computed = std::min(known.computed, computed), .ahead = {}, .lost = known.lost,
                     .hidden = known.hidden, .made = {}};
        size_t& taken = heir[parents[i]];
        if (taken == kNobody) {
            tables[i] = std::exchange(parent.table, {});
            taken = i;
        } else {
            kv->fork(tables[taken], computed, tables[i]); // all of it is there
            report.forked += 1;
        }
    }
    for (Sequence* s : g.slots) kv->release(s->table);
    for (size_t i = 0; i < g.slots.size(); ++i) {
        Sequence& s = *g.slots[i];
        s.idle = true;
        s.computed = i < parents.size() ? computed : 0;
        if (i >= parents.size()) continue;
        s.table = std::move(tables[i]);
        s.draft_kv = std::move(drafts[i]);
    }
}

// Its n best sequences become the outputs; or none, for a reason.
void Engine::State::end_beams(BeamGroup& g, FinishReason reason, const std::string& why) {
    const std::vector<Hypothesis> best = g.search.complete(); // the g goes with its last sequence
    const std::vector<Sequence*> slots = g.slots;
    for (Sequence* s : slots) {
        const bool found = reason == FinishReason::kNone && s->index < best.size();
        if (found) {
            const Hypothesis& h = best[s->index];
            s->tokens.resize(s->prompt_count);
            s->tokens.insert(s->tokens.end(), h.tokens.begin(), h.tokens.end());
            s->delta.tokens = h.tokens;
            s->delta.logprobs = h.logprobs;
            s->delta.text = h.text;
            s->delta.beam_score = h.score;
            s->sums.logprob = h.sum;
            finish(*s, h.finish, h.stop_reason);
        } else {
            finish(*s, reason == FinishReason::kNone ? FinishReason::kError : reason,
                   reason == FinishReason::kNone ? "the search found fewer sequences" : why);
        }
        ended_beams.push_back(s);
    }
}

// A page that several running beams are about to write to is copied by all of them but one: room for it is to be
// counted as often.
void Engine::State::charge_copies() {
    std::unordered_map<kv::BlockId, uint32_t> writers;
    for (size_t i = 0; i < running.size(); ++i) {
        const Sequence& s = *running[i];
        const uint32_t block = s.computed / kv->block_size();
        if (!s.beams || s.idle || block >= s.table.blocks) continue;
        const kv::BlockId page = s.table.pages[0][block];
        if (++writers[page] < kv->pool().references(page)) running_records[i].page_room = 0;
    }
}

}  // namespace patchbay::engine
