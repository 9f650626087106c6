// Sequences that lose their pages to others: their KV is thrown away and computed anew, or lies in host memory until
// they go on. The policy says who, and may say how; which of the two it is, is decided here.
#include <algorithm>
#include <utility>

#include "engine/state.hpp"

namespace patchbay::engine {

std::string_view name_of(SwapFallback reason) {
    static constexpr std::string_view kNames[kSwapFallbacks] = {"full", "dearer", "unmeasured"};
    return kNames[static_cast<size_t>(reason)];
}

void Engine::State::preempt(Sequence& s, pb_preemption how) {
    if (s.beams) return preempt_beams(*s.beams);
    report.preemptions += 1;
    running.erase(std::find(running.begin(), running.end(), &s));
    s.drop_drafts();
    if (swap_out(s, how)) {
        report.swapped_out += 1;
    } else {
        report.preempted_tokens += s.computed;
        kv->release(s.table);
    }
    s.computed = 0;
    s.preemptions += 1;
    s.place = Place::kWaiting;
    s.ticket = waiting.push_front(waiting_record(s));
    if (sequences_of(s.request.sampling) > 1) refresh_siblings(s.group);
    waiting_tokens += s.confirmed();
}

// Nothing that a step in flight writes is copied: whoever is preempted is back first.
bool Engine::State::swap_out(Sequence& s, pb_preemption how) {
    if (settings.preemption_mode == config::PreemptionMode::kRecompute || s.computed == 0) return false;
    if (s.table.held == 0) return false; // a window has passed all of it
    const auto refuse = [&](SwapFallback reason) {
        report.swap_fallbacks[static_cast<size_t>(reason)] += 1;
        return false;
    };
    if (settings.preemption_mode == config::PreemptionMode::kAuto && how != PB_PREEMPT_SWAP) {
        if (!token_cost.is_measured()) return refuse(SwapFallback::kUnmeasured);
        const double copying = 2.0 * s.table.held * runner->host_pages().ns_a_page(); // there and back
        if (copying >= s.computed * token_cost.ns_a_token()) return refuse(SwapFallback::kDearer);
    }
    if (!kv->swap_out(s.table, s.computed, s.swapped)) return refuse(SwapFallback::kFull);
    // Pages go as far as the target has computed: what a draft model has behind it, it computes again.
    s.draft_kv.computed = std::min(s.draft_kv.computed, s.computed);
    s.draft_kv.ahead.clear();
    return true;
}

// With room for a token more. False: there are not enough pages.
bool Engine::State::swap_in(Sequence& s) {
    if (!kv->swap_in(s.swapped, s.tokens, s.swapped.tokens + 1, s.table)) return false;
    s.computed = s.swapped.tokens;
    return true;
}

// Whether one that is to be admitted finds pages for all its tokens: what those who run still lack for theirs is not
// free.
bool Engine::State::finds_all_pages(const Sequence& s) const {
    if (!settings.reserve_full_sequence || running.empty()) return true;
    const kv::BlockTable& there = s.swapped.empty() ? s.table : s.swapped.slots;
    uint64_t wanted = kv->lacking(there, s.confirmed() + s.coming) + s.swapped.slots.held;
    for (const Sequence* other : running)
        if (!other->idle) wanted += kv->lacking(other->table, other->confirmed() + other->coming);
    return wanted <= kv->pool().free();
}

// Else whoever is preempted gives way for another reason: a seat, or a token that was none.
bool Engine::State::lacks_pages() const {
    uint64_t wanted = 0;
    for (const Sequence* s : running) {
        if (s->idle) continue;
        wanted += kv->lacking(s->table, s->confirmed() + s->coming);
        if (sequences_of(s->request.sampling) > 1) wanted += kv->shared_pages(s->table, s->computed + s->in_flight);
    }
    return wanted > kv->pool().free();
}

// Of the step that came back: its tokens, and its time on the device without copies of pages.
void Engine::State::note_token_cost(uint32_t tokens, uint32_t host_pages, uint64_t ns) {
    const auto copying = static_cast<uint64_t>(host_pages * runner->host_pages().ns_a_page());
    token_cost.step(tokens, ns - std::min(ns, copying));
}

// How full the pages of those who run are, and how long pages were held that came back.
void Engine::State::summarise_kv() {
    for (const Sequence* s : running) {
        const uint32_t gone = s->table.passed.empty() ? 0 : *std::ranges::min_element(s->table.passed);
        report.token_slots += (s->table.blocks - gone) * kv->block_size();
        report.empty_slots += kv->capacity(s->table) - std::min(kv->capacity(s->table), s->computed + s->in_flight);
    }
    report.residencies_ns = kv->take_residencies();
    report.watermark = pressure.watermark();
    report.swap_blocks = kv->swap_space().total();
    report.used_swap_blocks = kv->swap_space().used();
    report.host_page_ns = runner->host_pages().ns_a_page();
    report.token_ns = token_cost.ns_a_token();
}

void Engine::State::tell_kv_events() {
    if (!on_kv_events) return;
    const std::vector<kv::CacheEvent> events = kv->take_events();
    if (!events.empty()) on_kv_events(events, clock.now_ns());
}

Result<> Engine::State::flush_copies() {
    if (kv->copies().empty()) return {};
    batch.clear(runner->batch_form());
    for (const kv::PageCopy& page : kv->copies()) batch.copy(page);
    batch.finish();
    batch_rows.clear();
    auto rows = std::exchange(sample_rows, {}); // a sampler on probation is judged by them
    const Result<> done = forward();
    sample_rows = std::move(rows);
    if (done) kv->forget_copies();
    return done;
}

}  // namespace patchbay::engine
