// The eight phases of a step up to sampling. What follows is in commit.cpp.
#include <algorithm>
#include <utility>

#include "engine/simulation.hpp"
#include "engine/state.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::engine {

// 1 admit: arrivals whose time has come.
void Engine::State::admit() {
    while (!pending.empty() && pending.begin()->first <= phase_began_ns) {
        const RequestId id = pending.begin()->second;
        pending.erase(pending.begin());
        if (is_full(0)) refused.push_back(id);
        else enqueue(*sequences.at(id));
    }
}

pb_scheduler_in Engine::State::scheduler_view() {
    const kv::BlockPool& blocks = kv->pool();
    // Shared pages do not come free; counting them costs the table's length, so only when preemption is near.
    const size_t groups = kv->windows().size() + kv->state_pages();
    const size_t soon = running.size() * 2 + settings.max_num_batched_tokens / kv->block_size();
    const bool scarce = blocks.free() < soon * groups;
    running_records.clear();
    for (const Sequence* s : running) {
        running_records.push_back(record_of(*s, {}, kv->block_size()));
        if (scarce) running_records.back().freeable = kv->freeable(s->table);
    }
    if (!beams.empty()) charge_copies();
    update_hints();
    const auto waiting_records = shown_waiting();
    pb_scheduler_in in{};
    in.struct_size = sizeof in;
    in.sequence_stride = sizeof(pb_sequence);
    in.step = step;
    in.max_num_batched_tokens = settings.max_num_batched_tokens;
    in.max_num_seqs = settings.max_num_seqs;
    in.block_size = kv->block_size();
    in.kv_groups = static_cast<uint32_t>(kv->windows().size());
    in.group_windows = kv->windows().data();
    in.state_pages = kv->state_pages();
    in.free_blocks = blocks.free();
    in.total_blocks = blocks.total();
    in.watermark_blocks = static_cast<uint32_t>(pressure.watermark() * blocks.total());
    in.flags = settings.enable_chunked_prefill ? uint32_t{PB_STEP_CHUNKED_PREFILL} : 0u;
    if (settings.reserve_full_sequence) in.flags |= PB_STEP_RESERVE_FULL;
    in.running = running_records.data();
    in.running_count = static_cast<uint32_t>(running_records.size());
    in.waiting = waiting_records.data();
    in.waiting_count = static_cast<uint32_t>(waiting_records.size());
    in.long_prefill_token_threshold = settings.long_prefill_token_threshold;
    return in;
}

// 2 plan: the scheduler decides; one on probation that fails leaves the step to its predecessor. A plan that breaks the
// contract is refused: nothing runs, and it is counted.
Result<> Engine::State::plan() {
    Result<> done = ask_scheduler();
    if (!done) return plan_anew(std::move(done));
    bad_plans = 0;
    return {};
}

Result<> Engine::State::plan_anew(Result<> done) {
    constexpr uint32_t kBadPlansInARow = 8;
    if (roll_back(scheduler, "plan", done.error())) done = ask_scheduler();
    if (done) {
        bad_plans = 0;
        return {};
    }
    plan_out.item_count = plan_out.preempt_count = 0;
    report.plan_faults += 1;
    if (++bad_plans >= kBadPlansInARow)
        return fail(done.error() + " (" + std::to_string(kBadPlansInARow) + " bad plans in a row)");
    return {};
}

Result<> Engine::State::ask_scheduler() {
    pb_scheduler_in in = scheduler_view();
    items.resize(settings.max_num_seqs);
    preempts.resize(std::max<size_t>(running.size(), 1));
    plan_out = {sizeof(pb_scheduler_out), static_cast<uint32_t>(items.size()), items.data(), 0,
                static_cast<uint32_t>(running.size()), preempts.data(), 0, 0};
    const host::Component& c = scheduler.current();
    const uint64_t start = clock.now_ns();
    in.now_us = start / 1000;
    const Result<> done = host::checked<&pb_scheduler::plan>(c, &in, &plan_out);
    report.plan_ns += clock.now_ns() - start;
    PB_CHECK(done);
    return check_plan();
}

// Of those that were shown; plans mostly name them in the order in which they run, from `hint` on.
Sequence* Engine::State::find_shown(RequestId id, size_t& hint) {
    if (hint < running.size() && running[hint]->id == id) return running[hint++];
    const auto at = sequences.find(id);
    if (at == sequences.end() || at->second->place == Place::kPending || at->second->place == Place::kHeld)
        return nullptr;
    return at->second.get();
}

Result<> Engine::State::check_plan() {
    const auto breach = [&](const std::string& what) {
        return fail("scheduler '" + std::string(scheduler.current().type().name) + "' " + what);
    };
    if (plan_out.item_count > plan_out.item_capacity || plan_out.preempt_count > plan_out.preempt_capacity)
        return breach("wrote past its buffers");
    plans_checked += 1;
    const auto twice = [&](Sequence& s) { return std::exchange(s.named_by_plan, plans_checked) == plans_checked; };
    planned.clear();
    to_preempt.clear();
    size_t hint = 0;
    for (uint32_t i = 0; i < plan_out.preempt_count; ++i) {
        const uint64_t id = preempts[i].id;
        Sequence* s = find_shown(id, hint);
        if (!s || s->place != Place::kRunning)
            return breach("preempts " + std::to_string(id) + ", which is not running");
        if (twice(*s)) return breach("names " + std::to_string(id) + " twice");
        to_preempt.push_back(s);
    }
    uint64_t tokens = 0, stay = running.size() - plan_out.preempt_count;
    hint = 0;
    for (uint32_t i = 0; i < plan_out.item_count; ++i) {
        const uint64_t id = items[i].id;
        Sequence* s = find_shown(id, hint);
        if (!s) return breach("plans " + std::to_string(id) + ", which it was not shown");
        if (twice(*s)) return breach("names " + std::to_string(id) + " twice");
        if (items[i].tokens == 0) return breach("plans no tokens for " + std::to_string(id));
        tokens += items[i].tokens;
        stay += s->place == Place::kWaiting;
        planned.push_back(s);
    }
    if (tokens > settings.max_num_batched_tokens)
        return breach("plans " + std::to_string(tokens) + " tokens, more than max_num_batched_tokens of " +
                      std::to_string(settings.max_num_batched_tokens));
    if (stay > settings.max_num_seqs)
        return breach("has " + std::to_string(stay) + " sequences running, more than max_num_seqs of " +
                      std::to_string(settings.max_num_seqs));
    return {};
}

// 3 check+apply: preemptions first, then blocks in plan order; what does not fit is trimmed and counted.
void Engine::State::apply() {
    scheduled.clear();
    if (plan_out.preempt_count > 0 && lacks_pages()) report.crowded_out += plan_out.preempt_count;
    prompt_rows_left = most_prompt_rows();
    for (uint32_t i = 0; i < plan_out.preempt_count; ++i) preempt(*to_preempt[i], preempts[i].how);
    for (uint32_t i = 0; i < plan_out.item_count; ++i) schedule(*planned[i], items[i].tokens);
    fork_branches();
}

void Engine::State::schedule(Sequence& s, uint32_t tokens) {
    if (s.beams && s.beams->preempted_at == step) return; // with another one of its beams
    const bool admission = s.place == Place::kWaiting;
    if (admission && !has_room(s)) { // beams sit down together, also before one that the same plan admits
        report.trimmed += 1;
        return;
    }
    uint32_t hit = 0;
    if (admission && !s.swapped.empty()) {
        if (!finds_all_pages(s) || !swap_in(s)) {
            report.trimmed += 1;
            return;
        }
    } else if (admission) {
        s.computed = hit = adopt(s);
        s.draft_kv = {.computed = hit, .ahead = {}}; // shared pages hold both models' KV
    }
    // With a step in flight: as if it were back, and its token there.
    const uint32_t begin = s.computed + s.in_flight, known = s.confirmed() + s.coming;
    uint32_t wanted = std::min(tokens, s.remaining());
    if (const uint32_t noted = prompt_rows(s, begin, begin + wanted); noted > prompt_rows_left)
        wanted -= std::min(wanted, noted - prompt_rows_left);
    const uint32_t n = kv->fitting(s.table, begin, wanted);
    report.trimmed += n < wanted;
    const bool split = begin + n < known && !settings.enable_chunked_prefill;
    const bool stays = admission && (split || (s.swapped.empty() && !finds_all_pages(s)));
    if (n == 0 || stays || !kv->grow(s.table, begin + n)) {
        if (admission) { // stays where it waits; what it was shown as cached may have gone since
            kv->release(s.table);
            s.computed = 0;
            update_record(s);
        }
        return;
    }
    if (admission) {
        leave_queue(s);
        s.place = Place::kRunning;
        running.push_back(&s);
        report.admitted += 1;
        report.swapped_in += !s.swapped.empty();
        kv->drop(s.swapped);
        if (!s.admitted_once) { // hits are counted once a request, retries never
            s.admitted_once = true;
            s.cached_tokens = hit;
            s.first_scheduled_ns = report.start_ns;
            report.forked += s.forked;
            if (kv->caches_prefixes() && !s.forked && s.reads_prefixes()) {
                report.prefix_query_tokens += s.confirmed();
                report.prefix_hit_tokens += hit;
            }
        }
    }
    if (admission && s.beams) seat_beams(*s.beams);
    if (sequences_of(s.request.sampling) > 1) kv->own_pages(s.table, begin);
    const uint32_t end = begin + n;
    kv->name_full_blocks(s.table, {s.tokens.data(), std::min(end, s.confirmed())});
    const uint32_t rows = end >= known ? end - known + 1 : 0;
    scheduled.push_back({&s, n, known, rows, prompt_rows(s, begin, end)});
    prompt_rows_left -= scheduled.back().prompt_rows;
    const bool decodes = s.outputs() + s.coming > 0 && begin + 1 >= known; // a prompt's last token is prefill
    (decodes ? report.decode_tokens : report.prefill_tokens) += n;
}

// 4 build: the flat token batch, and a row to sample for each logit row.
void Engine::State::build() {
    batch.clear(runner->batch_form());
    for (const kv::PageCopy& page : kv->copies()) {
        batch.copy(page);
        report.copied_pages += page.way == kv::Way::kWithin;
        report.pages_to_host += page.way == kv::Way::kToHost;
        report.pages_to_device += page.way == kv::Way::kToDevice;
    }
    batch_rows.clear();
    sample_rows.clear();
    max_logprobs = 0;
    for (Scheduled& item : scheduled) {
        Sequence& s = *item.sequence;
        const uint32_t begin = s.computed + s.in_flight;
        placeholder = -1 - static_cast<TokenId>(s.coming_row);
        const auto tokens = s.coming > 0 ? std::span<const TokenId>(&placeholder, 1)
                                         : std::span<const TokenId>(s.tokens).subspan(begin, item.tokens);
        item.sequence->draft_kv.hidden = {begin, item.tokens, batch.tokens()};
        batch_rows.push_back({tokens, begin, item.prompt_rows + item.rows, s.table});
        batch.add(batch_rows.back());
        if (item.prompt_rows > 0)
            add_prompt_rows(s, begin + item.tokens - item.rows - item.prompt_rows, item.prompt_rows);
        item.first_row = static_cast<uint32_t>(sample_rows.size());
        for (uint32_t j = 0; j < item.rows; ++j) { // row j sees the drafts before it as accepted
            sample_rows.push_back(s.row_to_sample(item.confirmed - s.confirmed() + j));
        }
        s.stuck.clear();
        mask_rows({s, s.tokens, item.confirmed, 0, item.rows, item.first_row, s.masks, s.word_masks});
        if (item.rows > 0 && s.params.logprobs > 0)
            max_logprobs = std::max(max_logprobs, static_cast<uint32_t>(s.params.logprobs));
        if (item.prompt_rows > 0)
            max_logprobs = std::max(max_logprobs, static_cast<uint32_t>(s.prompt_params.logprobs));
    }
    if (!branches.empty()) add_branches();
    batch.finish();
    report.scheduled_seqs = static_cast<uint32_t>(scheduled.size());
    report.scheduled_tokens = batch.tokens();
}

// 5 run: one forward pass.
Result<> Engine::State::run() {
    PB_CHECK(forward());
    note_token_cost(batch.tokens(), report.pages_to_host + report.pages_to_device, clock.now_ns() - phase_began_ns);
    note_forward();
    return {};
}

bool Engine::State::pass_samples() const {
    return runner::runs_on_device(sampler.current()) && !sampler.previous() && !sample_rows.empty() && !facts.simulated;
}

void Engine::State::note_forward() {
    kv->forget_copies();
    report.forward = runner->call_times();
    report.sample_ns += report.forward.sampler;
    const runner::GraphUse& use = runner->graph_use();
    report.graph_replayed = use.miss == runner::GraphMiss::kNone;
    report.graph_miss = name_of(use.miss);
    report.graph_size = use.size;
    report.padded_tokens = use.padded_tokens;
    report.graph_capture_ns = use.capture_ns;
    report.graphs = runner->graphs().count();
    report.graph_bytes = runner->graphs().bytes();
}

// In place of sampling, where there is nothing to sample from.
void Engine::State::make_tokens() {
    sampled.clear();
    sampled_logprobs.clear();
    const size_t words = (facts.vocab_size + 31) / 32;
    const auto make = [&](const Sequence& s, uint64_t position, std::span<const uint32_t> masks, size_t row) {
        std::vector<TokenId> avoided; // what ends it, or might by its text
        if (!spelled.empty()) {
            avoided = s.request.sampling.stop_token_ids;
            avoided.insert(avoided.end(), spelled.begin(), spelled.end());
        }
        const TokenId token = synthetic_token(s.seed, position, facts.vocab_size, eos,
                                              spelled.empty() ? s.request.sampling.stop_token_ids : avoided);
        sampled.push_back(s.matcher ? next_allowed(token, masks.subspan(row * words, words), facts.vocab_size) : token);
        sampled_logprobs.push_back(s.params.logprobs < 0 ? 0 : synthetic_logprob(s.seed, position));
    };
    for (const Scheduled& item : scheduled) {
        sampled.resize(item.first_row, -1); // those of sequences that have ended are missing
        sampled_logprobs.resize(item.first_row);
        for (uint32_t j = 0; j < item.rows; ++j) make(*item.sequence, item.confirmed + j, item.sequence->masks, j);
    }
    for (const Branch& b : branches)
        for (uint32_t row = 0; row < b.rows(); ++row)
            make(*scheduled[b.item].sequence, scheduled[b.item].confirmed + b.shared + 1 + row, b.masks, row);
    ask_script();
}

// 6 sample: the rows that need a token. A sampler on probation that fails leaves them to its predecessor.
Result<> Engine::State::sample() {
    if (sample_rows.empty()) return {};
    PB_CHECK(sample_rows_of_step());
    accept_by_rates();
    return {};
}

Result<> Engine::State::sample_rows_of_step() {
    if (facts.simulated) {
        make_tokens();
        return {};
    }
    if (pass_samples()) {
        take(on_device);
        return {};
    }
    note_logits();
    const size_t values = sample_rows.size() * facts.vocab_size;
    if (sampler.previous()) kept_logits.assign(logits.begin(), logits.begin() + static_cast<ptrdiff_t>(values));
    Result<> done = ask_sampler();
    if (!done && roll_back(sampler, "sample", done.error())) {
        std::copy_n(kept_logits.begin(), values, logits.begin());
        done = ask_sampler();
    }
    return done;
}

runner::SampleCall Engine::State::sample_call() {
    pb_sample_batch b{};
    b.struct_size = sizeof b;
    b.row_count = static_cast<uint32_t>(sample_rows.size());
    b.row_stride = sizeof(pb_sample_row);
    b.max_logprobs = max_logprobs;
    b.logits = tensor(logits.data(), PB_F32, {static_cast<int64_t>(sample_rows.size()), facts.vocab_size});
    b.rows = sample_rows.data();
    return {sampler.current(), b};
}

void Engine::State::take(const runner::SampledRows& rows) {
    sampled.assign(rows.tokens.begin(), rows.tokens.end());
    sampled_logprobs.assign(rows.logprobs.begin(), rows.logprobs.end());
    top_tokens.assign(rows.top_tokens.begin(), rows.top_tokens.end());
    top_logprobs.assign(rows.top_logprobs.begin(), rows.top_logprobs.end());
    max_logprobs = rows.max_logprobs;
    sampled_surprise.clear();
    row_statistics.clear();
    report.sampler_faults += rows.faults;
}

Result<> Engine::State::sample_on_device(const runner::SampleCall& call) {
    PB_TRY(const auto there, runner->sample(logits.first(sample_rows.size() * facts.vocab_size), call));
    take(there);
    return {};
}

void Engine::State::clear_samples(size_t rows) {
    sampled.assign(rows, -1);
    sampled_logprobs.assign(rows, 0);
    top_tokens.assign(rows * max_logprobs, -1);
    top_logprobs.assign(rows * max_logprobs, 0);
    sampled_surprise.assign(rows, 0);
}

Result<> Engine::State::ask_sampler() {
    runner::SampleCall call = sample_call();
    const host::Component& c = call.sampler;
    const uint64_t start = clock.now_ns();
    if (runner::runs_on_device(c)) {
        PB_CHECK(sample_on_device(call));
    } else {
        clear_samples(sample_rows.size());
        pb_sample_batch& b = call.batch;
        b.tokens = sampled.data();
        b.logprobs = sampled_logprobs.data();
        b.top_tokens = top_tokens.data();
        b.top_logprobs = top_logprobs.data();
        b.surprise = sampled_surprise.data();
        if (by_rejection()) PB_CHECK(judge_drafts(c));
        PB_CHECK(host::checked<&pb_sampler::sample>(c, &b));
        report.sampler_faults += static_cast<uint32_t>(b.fault_count);
        follow_verdicts();
    }
    report.sample_ns += clock.now_ns() - start;
    if (!sampler.previous()) return {}; // of one that has passed its probation only the request fails
    for (const TokenId t : sampled)
        if (t < 0 || static_cast<uint32_t>(t) >= facts.vocab_size)
            return fail("gave token " + std::to_string(t) + ", expected 0 to " + std::to_string(facts.vocab_size - 1));
    return {};
}

}  // namespace patchbay::engine
