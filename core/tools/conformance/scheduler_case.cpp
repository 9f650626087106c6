#include "conformance/scheduler_case.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace patchbay::conformance {
namespace {

constexpr uint32_t kGuards = 8; // entries after each output buffer
constexpr uint64_t kGuardId = 0xFEEDFACE'CAFEBEEF;
constexpr std::byte kBetween{0x5a}; // records

uint32_t pages(uint32_t tokens, uint32_t block_size) { return (tokens + block_size - 1) / block_size; }

void place_in_pages(pb_sequence& s, uint32_t block_size, const std::vector<uint32_t>& windows = {0},
                    uint32_t state_pages = 0) {
    const uint32_t tokens = s.computed_tokens + s.in_flight, blocks = pages(tokens, block_size);
    s.pages = tokens > 0 ? state_pages : 0;
    for (const uint32_t w : windows) s.pages += blocks - (w > 0 && tokens >= w ? (tokens + 1 - w) / block_size : 0);
    s.tokens_until_next_page = blocks * block_size - tokens;
    s.pages_freed_if_preempted = s.pages;
}

pb_sequence random_sequence(Noise& noise, uint64_t id, uint64_t now_us) {
    pb_sequence s{};
    s.id = id;
    s.group = id;
    s.arrival_us = now_us - noise.below(1'000'000);
    s.priority = static_cast<int32_t>(noise.below(5)) - 2;
    s.tenant = noise.below(3);
    s.prompt_tokens = noise.between(1, noise.one_in(4) ? 900 : 60);
    s.max_tokens = noise.between(1, 64);
    if (noise.one_in(8)) s.deadline_us = now_us + noise.below(1'000'000);
    if (noise.one_in(2)) s.expected_output_tokens = noise.between(1, 64); // which may be wrong
    return s;
}

// A step is on the device: some of the tokens that were computed are of that step. Its last token is not counted yet.
void put_in_flight(pb_sequence& s, Noise& noise) {
    if (s.computed_tokens == 0 || s.draft_tokens > 0 || noise.one_in(4)) return;
    s.in_flight = s.output_tokens > 1 ? 1 : noise.between(1, s.computed_tokens);
    s.computed_tokens -= s.in_flight;
    if (s.output_tokens == s.max_tokens) s.output_tokens -= 1;
}

template <class T>
void fetch_apart(const T* from, size_t stride, std::vector<T>& out) {
    for (size_t i = 0; i < out.size(); ++i)
        std::memcpy(&out[i], reinterpret_cast<const char*>(from) + i * stride, sizeof(T));
}

const pb_scheduler_in* lend(const View& view, uint32_t extra, LentMemory& memory) {
    const uint32_t stride = sizeof(pb_sequence) + extra;
    pb_scheduler_in in = view.in;
    in.struct_size = sizeof in;
    in.sequence_stride = stride;
    in.running = memory.lend_apart(view.running, stride, kBetween);
    in.waiting = memory.lend_apart(view.waiting, stride, kBetween);
    in.running_count = static_cast<uint32_t>(view.running.size());
    in.waiting_count = static_cast<uint32_t>(view.waiting.size());
    if (in.group_windows) in.group_windows = memory.lend(in.group_windows, in.kv_groups);
    return memory.lend(in);
}

}  // namespace

const pb_sequence* View::find(uint64_t id) const {
    for (const auto* list : {&running, &waiting})
        for (const pb_sequence& s : *list)
            if (s.id == id) return &s;
    return nullptr;
}

bool View::runs(uint64_t id) const {
    return std::any_of(running.begin(), running.end(), [&](const pb_sequence& s) { return s.id == id; });
}

namespace {

std::vector<View> random_views() {
    std::vector<View> out;
    for (uint32_t i = 0; i < 96; ++i) {
        Noise noise(1000 + i), in_flight(2000 + i);
        View v;
        v.in.step = i;
        v.in.now_us = 5'000'000 + i;
        v.in.max_num_batched_tokens = i % 5 == 0 ? noise.between(1, 3) : noise.between(16, 512);
        v.in.max_num_seqs = i % 7 == 0 ? 1 : noise.between(2, 24);
        v.in.block_size = noise.one_in(3) ? 1 : 16;
        v.in.kv_groups = 1;
        const bool chunked = i % 4 != 3;
        v.in.flags = chunked ? uint32_t{PB_STEP_CHUNKED_PREFILL} : 0u;
        v.in.long_prefill_token_threshold = chunked && noise.one_in(3) ? noise.between(1, 64) : 0;
        const bool empty = i % 16 == 0, decodes_only = i % 16 == 1 || !chunked;
        uint64_t id = 1 + i * 1000;
        const uint32_t running = empty ? 0 : noise.between(0, v.in.max_num_seqs),
                       waiting = empty || i % 16 == 1 ? 0 : noise.between(0, 30);
        uint32_t used = 0;
        for (uint32_t k = 0; k < running; ++k) {
            pb_sequence s = random_sequence(noise, id++, v.in.now_us);
            if (decodes_only || noise.one_in(2)) {
                s.output_tokens = noise.between(1, s.max_tokens);
                s.computed_tokens = s.prompt_tokens + s.output_tokens - 1;
                if (noise.one_in(4)) s.draft_tokens = noise.between(1, 4);
            } else {
                s.computed_tokens = noise.below(s.prompt_tokens);
            }
            if (i % 3 == 2) put_in_flight(s, in_flight);
            place_in_pages(s, v.in.block_size);
            used += s.pages;
            v.running.push_back(s);
        }
        const uint32_t preempted = waiting > 0 && running > 0 ? noise.below(3) : 0;
        for (uint32_t k = 0; k < waiting; ++k) {
            pb_sequence s = random_sequence(noise, id++, v.in.now_us);
            if (k < preempted) {
                s.flags |= PB_SEQ_PREEMPTED;
                s.preemptions = 1;
                s.output_tokens = noise.below(s.max_tokens);
            }
            if (noise.one_in(5)) s.flags |= PB_SEQ_NO_CHUNK;
            if (noise.one_in(3)) {
                s.cached_tokens = noise.below(s.prompt_tokens);
                s.cached_pages_in_use = noise.below(s.cached_tokens / v.in.block_size + 1);
            } else if (noise.one_in(8)) {
                s.beams = noise.between(1, v.in.max_num_seqs);
            }
            if (k < preempted && noise.one_in(2)) { // its KV lies in host memory
                s.flags |= PB_SEQ_SWAPPED;
                s.cached_tokens = s.prompt_tokens + s.output_tokens - 1;
                s.cached_pages_in_use = 0;
            }
            v.waiting.push_back(s);
        }
        v.in.free_pages = i % 6 == 0 ? 0 : noise.between(0, 400);
        v.in.total_pages = used + v.in.free_pages;
        v.in.watermark_pages = v.in.total_pages / 100;
        out.push_back(std::move(v));
    }
    return out;
}

// A decoding sequence whose drafts neither the budget nor the pages leave room for, and one that could give way.
View tight_drafts(uint32_t drafts, uint32_t budget, uint32_t free_pages) {
    View v;
    v.in.now_us = 5'000'000;
    v.in.max_num_batched_tokens = budget;
    v.in.max_num_seqs = 8;
    v.in.block_size = 16;
    v.in.kv_groups = 1;
    v.in.flags = PB_STEP_CHUNKED_PREFILL;
    Noise noise(7);
    for (uint64_t id = 1; id <= 2; ++id) {
        pb_sequence s = random_sequence(noise, id, v.in.now_us);
        s.prompt_tokens = 90;
        s.max_tokens = 64;
        s.output_tokens = 6;
        s.computed_tokens = 95; // one more fills its last page
        if (id == 1) s.draft_tokens = drafts;
        place_in_pages(s, v.in.block_size);
        v.in.total_pages += s.pages;
        v.running.push_back(s);
    }
    v.in.free_pages = free_pages;
    v.in.total_pages += free_pages;
    return v;
}

}  // namespace

std::vector<View> views() {
    std::vector<View> out = random_views();
    for (const uint32_t drafts : {1u, 2u, 4u})
        for (const uint32_t budget : {1u, 2u, 3u, 5u})
            for (const uint32_t free_pages : {0u, 1u}) out.push_back(tight_drafts(drafts, budget, free_pages));
    return out;
}

Result<Planned> show(const host::Component& component, LentMemory& memory, const View& view, uint32_t extra) {
    const pb_scheduler_in* const in = lend(view, extra, memory);
    const uint32_t seats = view.in.max_num_seqs, max_preempts = in->running_count;
    std::vector<pb_plan_item> items(seats + kGuards, {kGuardId, 0, 0});
    std::vector<pb_preempt_item> preempts(max_preempts + kGuards, {kGuardId, 0, 0});
    const uint32_t item_stride = sizeof(pb_plan_item) + extra, preempt_stride = sizeof(pb_preempt_item) + extra;
    pb_scheduler_out out{sizeof(pb_scheduler_out),
                         item_stride,
                         seats,
                         preempt_stride,
                         memory.lend_apart(items, item_stride, kBetween),
                         0,
                         max_preempts,
                         memory.lend_apart(preempts, preempt_stride, kBetween),
                         0,
                         0};
    pb_scheduler_out* const lent = memory.lend(out);
    const auto& table = *static_cast<const pb_scheduler*>(component.type().vtable);
    PB_CHECK(component.check(table.plan(component.self(), in, lent), "plan"));
    fetch_apart(out.items, item_stride, items);
    fetch_apart(out.preempts, preempt_stride, preempts);
    out = *lent;
    Planned planned;
    const auto untouched = [](const auto& entry) { return entry.id == kGuardId; };
    planned.within_bounds = memory.end_call() && out.item_count <= seats && out.preempt_count <= max_preempts &&
                            std::all_of(items.begin() + seats, items.end(), untouched) &&
                            std::all_of(preempts.begin() + max_preempts, preempts.end(), untouched);
    items.resize(std::min(out.item_count, seats));
    preempts.resize(std::min(out.preempt_count, max_preempts));
    planned.items = std::move(items);
    planned.preempts = std::move(preempts);
    return planned;
}

namespace {

void arrive(const host::Component& component, const pb_sequence& s, LentMemory& memory) {
    const auto& table = *static_cast<const pb_scheduler*>(component.type().vtable);
    table.arrived(component.self(), memory.lend(s), uint32_t{sizeof(pb_sequence)});
    memory.end_call();
}

}  // namespace

Result<Planned> plan_fresh(Subject& subject, const View& view, uint32_t extra) {
    PB_TRY(auto component, subject.make());
    const auto& table = subject.table<pb_scheduler>();
    if (table.resync) {
        table.resync(component->self(), lend(view, extra, subject.lent()));
        subject.lent().end_call();
    } else if (table.arrived) {
        for (const pb_sequence& s : view.waiting) arrive(*component, s, subject.lent());
    }
    return show(*component, subject.lent(), view, extra);
}

bool same(const Planned& a, const Planned& b) {
    const auto equal_items = [](const pb_plan_item& x, const pb_plan_item& y) {
        return x.id == y.id && x.tokens == y.tokens;
    };
    const auto equal_preempts = [](const pb_preempt_item& x, const pb_preempt_item& y) {
        return x.id == y.id && x.how == y.how;
    };
    return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal_items) &&
           std::equal(a.preempts.begin(), a.preempts.end(), b.preempts.begin(), b.preempts.end(), equal_preempts);
}

// ---- closed loop -----------------------------------------------------------------------------

std::vector<LoopCase> loop_cases() {
    return {
        {"room for all", 24, 80, 20, 256, 32, 1000, 16, true, 0},
        {"few seats", 30, 60, 12, 64, 3, 1000, 16, true, 16},
        {"little memory", 16, 90, 40, 128, 8, 12, 16, true, 0}, // one fits, eight do not
        {"whole prompts", 24, 100, 16, 128, 8, 64, 16, false, 0},
        {"a token a step", 5, 20, 6, 1, 4, 64, 1, true, 0},
        {"groups", 16, 90, 40, 128, 8, 36, 16, true, 0, {0, 0, 0}},
        {"windows and states", 16, 200, 40, 256, 8, 26, 16, true, 0, {0, 16, 20}, 2}, // one fits, in parts
        {"a step in flight", 24, 90, 40, 64, 8, 24, 16, true, 0, {0}, 0, true},
    };
}

namespace {

struct Loop {
    Loop(const host::Component& c, const LoopCase& which, LentMemory& lent)
        : component(c), table(*static_cast<const pb_scheduler*>(c.type().vtable)), l(which), memory(lent) {}

    void arrive(uint64_t id, Noise& noise) {
        pb_sequence s{};
        s.id = s.group = id;
        s.arrival_us = now_us;
        s.priority = static_cast<int32_t>(noise.below(3));
        s.prompt_tokens = noise.between(1, l.max_prompt);
        s.max_tokens = noise.between(1, l.max_output);
        s.tenant = noise.below(3);
        if (noise.one_in(2)) s.deadline_us = now_us + noise.below(200'000);
        if (noise.one_in(2)) s.expected_output_tokens = noise.between(1, l.max_output);
        waiting.push_back(s);
        if (table.arrived) conformance::arrive(component, s, memory);
    }

    View view(uint64_t step) const {
        View v;
        v.running = running;
        v.waiting = waiting;
        v.in.step = step;
        v.in.now_us = now_us;
        v.in.max_num_batched_tokens = l.budget;
        v.in.max_num_seqs = l.seats;
        v.in.block_size = l.block_size;
        v.in.kv_groups = static_cast<uint32_t>(l.windows.size());
        v.in.group_windows = l.windows.data();
        v.in.state_pages = l.state_pages;
        v.in.free_pages = l.blocks - used;
        v.in.total_pages = l.blocks;
        v.in.flags = l.chunked ? uint32_t{PB_STEP_CHUNKED_PREFILL} : 0u;
        v.in.long_prefill_token_threshold = l.threshold;
        return v;
    }

    void preempt(uint64_t id) {
        const auto at = std::find_if(running.begin(), running.end(), [&](auto& s) { return s.id == id; });
        if (at == running.end()) return;
        pb_sequence s = *at;
        running.erase(at);
        used -= s.pages;
        s.computed_tokens = 0;
        s.preemptions += 1;
        s.flags |= PB_SEQ_PREEMPTED;
        place_in_pages(s, l.block_size, l.windows, l.state_pages);
        waiting.insert(waiting.begin(), s);
    }

    // Pages that n more tokens of s take before what their windows pass comes free.
    uint32_t taken_by(const pb_sequence& s, uint32_t n) const {
        const uint32_t before = s.computed_tokens + s.in_flight;
        const uint32_t blocks = pages(before + n, l.block_size) - pages(before, l.block_size);
        return blocks * static_cast<uint32_t>(l.windows.size()) + (before == 0 ? l.state_pages : 0);
    }

    // In a step in flight: it ends as that comes back.
    static bool makes_its_last(const pb_sequence& s) { return s.in_flight > 0 && remaining(s) == 0; }

    void run(uint64_t id, uint32_t tokens) {
        const auto waits = std::find_if(waiting.begin(), waiting.end(), [&](auto& s) { return s.id == id; });
        if (waits != waiting.end() && running.size() < l.seats) {
            pb_sequence s = *waits;
            const bool whole = tokens >= remaining(s);
            const uint32_t wanted = std::min(tokens, remaining(s));
            const uint32_t least = l.chunked ? 1 : wanted; // the rest is trimmed
            if ((!l.chunked && !whole) || taken_by(s, least) > l.blocks - used) return;
            waiting.erase(waits);
            running.push_back(s);
        }
        const auto at = std::find_if(running.begin(), running.end(), [&](auto& s) { return s.id == id; });
        if (at == running.end()) return;
        uint32_t n = std::min(tokens, remaining(*at));
        while (n > 0 && taken_by(*at, n) > l.blocks - used) n -= 1; // what does not fit is trimmed
        at->in_flight += n;
        used -= at->pages;
        place_in_pages(*at, l.block_size, l.windows, l.state_pages);
        used += at->pages;
        if (n > 0) submitted.push_back({id, n});
        if (n > 0 && remaining(*at) == 0 && at->output_tokens + 1 < at->max_tokens) at->output_tokens += 1;
    }

    // Of the step before, or of this one.
    void collect(const std::vector<pb_plan_item>& step) {
        for (const pb_plan_item& i : step) {
            const auto at = std::find_if(running.begin(), running.end(), [&](auto& s) { return s.id == i.id; });
            if (at == running.end()) continue;
            const bool ends = makes_its_last(*at);
            at->computed_tokens += i.tokens;
            at->in_flight -= i.tokens;
            if (ends) end(at);
        }
    }

    void end(std::vector<pb_sequence>::iterator at) {
        if (table.finished) {
            table.finished(component.self(), memory.lend(pb_finished{sizeof(pb_finished), PB_FINISH_LENGTH, at->id,
                                                                     at->max_tokens, 0}));
            memory.end_call();
        }
        used -= at->pages;
        running.erase(at);
    }

    const host::Component& component;
    const pb_scheduler& table;
    const LoopCase& l;
    LentMemory& memory;
    std::vector<pb_sequence> running, waiting;
    std::vector<pb_plan_item> submitted; // in this step
    uint32_t used = 0; // pages
    uint64_t now_us = 1'000'000;
};

}  // namespace

Result<LoopResult> run_loop(const host::Component& component, LentMemory& memory, const LoopCase& l,
                            uint32_t max_steps) {
    Loop loop(component, l, memory);
    Noise noise(77);
    LoopResult result;
    uint32_t arrived = 0;
    for (uint64_t step = 0; step < max_steps; ++step) {
        for (uint32_t k = noise.below(3); k > 0 && arrived < l.requests; --k) loop.arrive(++arrived, noise);
        PB_TRY(Planned planned, show(component, memory, loop.view(step)));
        // As the engine does: the step in flight is collected first, and this plan is not applied.
        if (l.in_flight && !planned.preempts.empty() && !loop.submitted.empty()) {
            result.plans.push_back(std::move(planned));
            loop.collect(std::exchange(loop.submitted, {}));
            PB_TRY(planned, show(component, memory, loop.view(step)));
        }
        for (const pb_preempt_item& p : planned.preempts) loop.preempt(p.id);
        const std::vector<pb_plan_item> before = std::exchange(loop.submitted, {});
        for (const pb_plan_item& i : planned.items) loop.run(i.id, i.tokens);
        loop.collect(l.in_flight ? before : loop.submitted);
        result.plans.push_back(std::move(planned));
        loop.now_us += 10'000;
        if (arrived == l.requests && loop.running.empty() && loop.waiting.empty()) return result;
    }
    for (const auto* list : {&loop.running, &loop.waiting})
        for (const pb_sequence& s : *list) result.unfinished.push_back(s.id);
    return result;
}

}  // namespace patchbay::conformance
