// The last two phases of a step: tokens become output, outputs become text, and drafts are made for the next step.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "engine/state.hpp"

namespace patchbay::engine {

bool Engine::State::end_with(Sequence& s, FinishReason how, std::string_view reason) {
    finish(s, how, std::string(reason));
    return false;
}

bool Engine::State::refuse_token(Sequence& s, TokenId token) { // a failing request fails alone
    report.sampler_faults += 1;
    launched.spoilt = launched.spoilt || (s.in_flight > 0 && !facts.simulated); // it computes with that token
    return end_with(s, FinishReason::kError,
                    "sampler '" + std::string(sampler.current().type().name) + "' gave token " +
                        std::to_string(token) + ", expected 0 to " + std::to_string(facts.vocab_size - 1));
}

bool Engine::State::append_text(Sequence& s, TokenId token, bool may_stop) {
    const std::string text = s.detokenizer->add(token);
    s.delta.text += may_stop ? s.stops.add(text) : text;
    return s.stops.matched().empty() || end_with(s, FinishReason::kStop, s.stops.matched());
}

// Appends one token; false if the sequence ended with it.
bool Engine::State::append_token(Sequence& s, TokenId token, size_t row) {
    const SamplingParams& p = s.request.sampling;
    if (token < 0 || static_cast<uint32_t>(token) >= facts.vocab_size) return refuse_token(s, token);
    if (!check_stuck(s, row)) return false;
    if (s.matcher && !follow_grammar(s, token)) return false;
    s.tokens.push_back(token);
    s.delta.tokens.push_back(token);
    if (s.samples_by_surprise()) s.surprise.push_back(row < sampled_surprise.size() ? sampled_surprise[row] : 0);
    report.sampled_tokens += 1;
    add_statistics(s, row);
    if (s.params.logprobs >= 0) s.sums.logprob += sampled_logprobs[row];
    if (p.logprobs) s.delta.logprobs.push_back(logprobs_of(row, *p.logprobs));
    const uint32_t made = s.outputs();
    const bool may_stop = made > p.min_tokens;
    const bool is_eos = !p.ignore_eos && std::find(eos.begin(), eos.end(), token) != eos.end();
    const bool is_stop = std::find(p.stop_token_ids.begin(), p.stop_token_ids.end(), token) != p.stop_token_ids.end();
    if (may_stop && is_stop) return end_with(s, FinishReason::kStop, std::to_string(token));
    if (may_stop && is_eos) return end_with(s, FinishReason::kStop, "");
    if (s.detokenizer && !append_text(s, token, may_stop)) return false;
    if (s.matcher && s.matcher->finished()) return end_with(s, FinishReason::kStop, ""); // min_tokens or not
    if (made >= p.max_tokens || s.tokens.size() >= facts.max_model_len) return end_with(s, FinishReason::kLength, "");
    return true;
}

// Takes the sampled tokens of one sequence: drafts are accepted while they equal what was sampled.
void Engine::State::append_tokens(const Scheduled& item) {
    Sequence& s = *item.sequence;
    if (is_aborted(s)) { // it ends with the step, without the step's tokens
        s.drop_drafts();
        s.computed = item.confirmed;
        return;
    }
    Branch* const winner = follow_drafts(item);
    const auto accepted = static_cast<uint32_t>(taken_rows.size()) - 1;
    uint32_t verified = 0;
    const auto count = [&](uint32_t from, uint32_t to) { // drafts of a path
        verified += to - from;
        for (uint32_t j = from; j < to; ++j)
            report.drafted_at[std::min<size_t>(j, StepReport::kDraftPositions - 1)] += 1;
    };
    count(0, item.rows - 1);
    for (const Branch& b : branches)
        if (&scheduled[b.item] == &item) count(b.shared, b.drafts);
    for (uint32_t j = 0; j < accepted; ++j)
        report.accepted_at[std::min<size_t>(j, StepReport::kDraftPositions - 1)] += 1;
    report.drafted_tokens += verified;
    report.accepted_tokens += accepted;
    if (verified > 0 && proposer.table->observe) proposer.call<&pb_proposer::observe>(s.id, verified, accepted);
    if (winner) {
        const auto first = std::span(s.tokens).subspan(item.confirmed, item.rows - 1);
        report.branch_tokens += accepted - common_length(first, winner->path().first(accepted));
        take_over(s, *winner);
    }
    s.drop_drafts();
    s.computed = item.confirmed + accepted; // the KV of accepted drafts is there, that of the newest token is not
    for (const uint32_t row : taken_rows)
        if (!append_token(s, sampled[row], row)) return;
}

// 7 commit: append tokens, stop conditions, blocks freed or cached.
void Engine::State::commit() {
    for (Scheduled& item : scheduled) {
        if (item.prompt_rows > 0) take_prompt_rows(item);
        if (item.rows == 0) item.sequence->computed += item.tokens;
        else if (item.sequence->beams) take_candidates(item);
        else append_tokens(item);
        if (item.sequence->holds_siblings && item.sequence->outputs() > 0) release_siblings(*item.sequence);
        Sequence& s = *item.sequence;
        if (!drafts_by_model()) kv->pass(s.table, std::min(s.computed, needed_from(s)));
    }
    drop_branches();
}

// After publish, so that no token waits for the drafts behind it: they are for the next step, and part of its commit
// phase. Drafts only save time: a proposer that fails is counted, and the next step does without.
void Engine::State::propose() {
    const uint32_t k = choose_draft_length();
    std::vector<pb_propose_row> rows;
    std::vector<Sequence*> owners;
    for (Sequence* s : running) {
        if (is_aborted(*s)) continue;
        if (s->beams) continue; // a draft continues one beam, and each step takes up others
        if (!s->decoding() || s->drafts > 0) continue; // drafts that were not verified in this step still stand
        if (s->samples_by_surprise()) continue;
        const uint32_t left = s->request.sampling.max_tokens - s->outputs(); // at least 1, made by the step itself
        const uint32_t room = facts.max_model_len - s->confirmed();
        uint32_t most = std::min({k, left - 1, room > 0 ? room - 1 : 0});
        if (most > 0 && drafts_by_model()) most = draft_model->make_room(*s, most, running.size());
        if (most == 0) continue;
        if (s->tokens.capacity() < s->tokens.size() + k) s->tokens.reserve(2 * s->tokens.size() + k);
        rows.push_back({s->id, s->tokens.data(), s->confirmed(), most, speculation.max_paths, 0});
        owners.push_back(s);
    }
    const uint64_t start = clock.now_ns();
    Result<> done = drafts_by_model() ? draft_with_model(rows, owners) : Result<>();
    if (!drafts_by_model() && !rows.empty()) done = ask_proposer(rows, owners);
    report.propose_ns = clock.now_ns() - start;
    if (done) return;
    if (proposer_faults == 0) spdlog::warn("{}: this step goes on without drafts", done.error());
    proposer_faults += 1;
    report.proposer_faults += 1;
}

// It ends in the step that computed its prompt, whose blocks may be shared from now on: by both models.
bool Engine::State::stays_behind(const Sequence& s) const {
    const size_t shared = s.table.keys.size() * kv->block_size(); // tokens
    return in_step && drafts_by_model() && draft_model->keeps_kv() && !s.draft_kv.lost &&
           shared > s.draft_kv.computed;
}

// The model goes on with what the target has computed, whoever is drafted for.
Result<> Engine::State::draft_with_model(std::span<const pb_propose_row> rows, std::span<Sequence* const> owners) {
    std::vector<DraftModel::Row> wanted;
    for (size_t i = 0; i < rows.size(); ++i) wanted.push_back({owners[i], rows[i].max_drafts});
    std::vector<Sequence*> all;
    for (const auto& s : behind) all.push_back(s.get());
    all.insert(all.end(), running.begin(), running.end());
    PB_CHECK(flush_copies()); // of pages that were taken for drafts
    draft_model->begin(wanted, all);
    const Result<> asked = rows.empty() ? Result<>() : ask_proposer(rows, owners);
    const Result<> followed = draft_model->end();
    report.draft_passes = draft_model->work().passes;
    report.draft_pass_tokens = draft_model->work().tokens;
    report.draft_pass_ns = draft_model->work().ns;
    for (Sequence* s : running) kv->pass(s->table, std::min(draft_model->computed_by_both(*s), needed_from(*s)));
    for (const auto& s : behind) kv->release(s->table);
    behind.clear();
    return asked ? followed : asked;
}

Result<> Engine::State::ask_proposer(std::span<const pb_propose_row> rows, std::span<Sequence* const> owners) {
    const uint32_t k = settings.num_speculative_tokens * speculation.max_paths; // room of a row
    std::vector<TokenId> drafts(rows.size() * k, -1);
    std::vector<uint32_t> counts(rows.size(), 0);
    std::vector<uint8_t> drawn(rows.size() * k, 0);
    std::vector<int32_t> parents;
    for (size_t i = 0; speculation.max_paths > 1 && i < drafts.size(); ++i)
        parents.push_back(static_cast<int32_t>(i % k) - 1);
    pb_propose_batch b{sizeof(pb_propose_batch), static_cast<uint32_t>(rows.size()), sizeof(pb_propose_row), k,
                       rows.data(), drafts.data(), counts.data(), parents.empty() ? nullptr : parents.data()};
    if (by_rejection()) {
        drawn_from.resize(std::max(drawn_from.size(), drawn.size() * facts.vocab_size));
        b.probs = drawn_from.data();
        b.drawn = drawn.data();
        b.vocab_size = facts.vocab_size;
    }
    PB_CHECK(proposer.checked<&pb_proposer::propose>(&b));
    for (size_t i = 0; i < rows.size(); ++i) {
        if (!parents.empty()) {
            const size_t count = std::min(counts[i], k);
            keep_tree(*owners[i], tree_of(std::span(drafts).subspan(i * k, count),
                                          std::span(parents).subspan(i * k, count),
                                          {rows[i].max_drafts, speculation.max_paths, facts.vocab_size}));
            continue;
        }
        const uint32_t count = std::min(counts[i], rows[i].max_drafts);
        for (uint32_t j = 0; j < count; ++j) {
            const TokenId t = drafts[i * k + j];
            if (t < 0 || static_cast<uint32_t>(t) >= facts.vocab_size) break; // the rest hangs on it
            const std::span<const float> all = drawn_from;
            const bool random = drawn[i * k + j] != 0;
            keep_draft(*owners[i], t,
                       random ? all.subspan((i * k + j) * facts.vocab_size, facts.vocab_size) : all.first(0));
        }
        if (owners[i]->matcher) cut_drafts(*owners[i]);
    }
    return {};
}

// What a proposer writes into parents may be wrong: that is its fault, and what hangs on it is no draft.
void Engine::State::keep_tree(Sequence& s, DraftTree tree) {
    if (!tree.sound) {
        if (proposer_faults++ == 0)
            spdlog::warn("proposer '{}' gave a draft that hangs on no draft before it: it is cut, with what follows",
                         proposer.component->type().name);
        report.proposer_faults += 1;
    }
    std::vector<DraftPath> paths;
    for (DraftPath& path : tree.paths) {
        if (s.matcher) cut_path(s, path);
        add_path(paths, std::move(path), speculation.max_paths);
    }
    if (paths.empty()) return;
    for (const TokenId token : paths.front()) keep_draft(s, token, {});
    s.branches.assign(std::make_move_iterator(paths.begin() + 1), std::make_move_iterator(paths.end()));
}

namespace {

// Of a sequence that goes on, what a delta may hold; it keeps its memory for the next token.
void clear_delta(RequestOutput& delta) {
    delta.tokens.clear();
    delta.logprobs.clear();
    delta.text.clear();
    delta.prompt_logprobs = {};
}

}  // namespace

// Its request was aborted in the step that made the delta, before it was handed out: the tokens are dropped, and what
// the output ends with is the text that was held back before them.
void Engine::State::take_back_step(Sequence& s) {
    const SamplingParams& p = s.request.sampling;
    const size_t published = s.outputs() - s.delta.tokens.size(); // the others stay: a draft model may compute them yet
    s.sums = s.published_sums;
    clear_delta(s.delta);
    s.delta.beam_score.reset();
    if (s.detokenizer) {
        s.detokenizer = std::make_unique<text::Detokenizer>(tokenizer);
        s.stops = stops_of(p);
        for (size_t i = 0; i < published; ++i) {
            const std::string text = s.detokenizer->add(s.tokens[s.prompt_count + i]);
            if (i + 1 > p.min_tokens) s.stops.add(text);
        }
    }
    if (s.delta.finish == FinishReason::kNone) return; // the step ends it
    s.delta.finish = FinishReason::kAbort;
    s.delta.stop_reason.clear();
    close_delta(s);
}

// 8 publish: hand the deltas out, those of sequences that go on first. Callbacks may add and abort requests: those that
// they abort are there until the step ends, and are handed nothing more of it.
void Engine::State::publish() {
    told.clear();
    std::vector<std::unique_ptr<Sequence>> ended;
    const auto collect = [&](Sequence& s) {
        if (s.delta.tokens.empty() && s.delta.finish == FinishReason::kNone) return;
        s.delta.time_ns = phase_began_ns;
        if (s.delta.finish == FinishReason::kNone) return told.push_back(&s);
        ended.push_back(std::move(sequences.extract(s.id).mapped()));
    };
    for (Sequence* s : std::exchange(ended_beams, {})) collect(*s);
    for (const Scheduled& item : scheduled)
        if (!item.sequence->beams) collect(*item.sequence); // the outputs of beams are known at their end
    for (Sequence* s : told) {
        if (is_aborted(*s)) {
            take_back_step(*s);
            continue;
        }
        if (s->request.on_output) s->request.on_output(s->delta);
        clear_delta(s->delta);
        s->published_sums = s->sums;
    }
    for (auto& s : ended) {
        if (is_aborted(*s)) take_back_step(*s);
        if (s->request.on_output) s->request.on_output(s->delta);
        if (s->table.held > 0) behind.push_back(std::move(s));
    }
}

// What the step leaves behind, for metrics and records.
void Engine::State::summarise() {
    const kv::BlockPool& blocks = kv->pool();
    report.running_requests = static_cast<uint32_t>(running.size());
    report.waiting_requests = static_cast<uint32_t>(waiting.records().size());
    report.waiting_tokens = waiting_tokens;
    const uint64_t now = clock.now_ns();
    uint64_t oldest = now;
    for (const pb_sequence& r : waiting.records()) {
        oldest = std::min(oldest, r.arrival_us * 1000);
        if (r.preemptions == 0 && r.id == r.group) break; // behind preempted ones and siblings: in order of arrival
    }
    report.oldest_wait_ns = now - oldest;
    report.total_blocks = blocks.total();
    report.used_blocks = blocks.used();
    report.cached_blocks = blocks.cached();
    for (size_t kind = 0; kind < kv::kGroupKinds; ++kind)
        report.group_blocks[kind] = kv->used(static_cast<kv::GroupKind>(kind));
    summarise_kv();
    report_grammars();
    report.end_ns = now;
}

}  // namespace patchbay::engine
