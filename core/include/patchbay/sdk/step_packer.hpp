// patchbay/sdk/step_packer.hpp - what most schedulers have in common: packing sequences into one step under a token
// budget, preempting when pages run out, admitting while there is room. A policy brings only its two orders.
#pragma once
#include <algorithm>
#include <vector>

#include "patchbay/sdk/scheduler.hpp"

namespace patchbay {

namespace detail {

inline uint32_t without_drafts(const pb_sequence& s) { return remaining(s) - s.draft_tokens; }

// Kept for running sequences that are still to be planned, where drafts of others could take it: for each decode its
// own token, for each prompt in progress a page of tokens, so that it goes on; and the pages for them.
class HeldForOthers {
  public:
    explicit HeldForOthers(const SchedulerStep& step) : step_(step) {}

    uint32_t tokens() const { return tokens_; }
    uint64_t pages() const { return pages_; }

    void hold(bool prompts) { // decodes, and prompts unless they are planned already
        for (const pb_sequence& s : step_.running) drafted_ = drafted_ || s.draft_tokens > 0;
        prompts_ = prompts;
        if (!drafted_) return;
        for (const pb_sequence& s : step_.running) {
            const uint32_t n = held_of(s);
            tokens_ += n;
            pages_ += step_.pages_for(s, n);
        }
    }
    void let_go(const pb_sequence& s) { // which is planned now
        if (!drafted_) return;
        const uint32_t n = held_of(s);
        tokens_ -= n;
        pages_ -= step_.pages_for(s, n);
    }

  private:
    uint32_t held_of(const pb_sequence& s) const {
        if (decoding(s)) return without_drafts(s);
        const uint32_t t = step_.raw.long_prefill_token_threshold;
        return prompts_ ? std::min({remaining(s), step_.raw.block_size, t > 0 ? t : UINT32_MAX}) : 0;
    }

    const SchedulerStep& step_;
    bool drafted_ = false, prompts_ = false;
    uint32_t tokens_ = 0;
    uint64_t pages_ = 0;
};

// Pages that those who run lack for tokens of later steps, where admitting is to look so far ahead; else none.
class LaterPages {
  public:
    explicit LaterPages(const SchedulerStep& step) : step_(step) {}

    uint64_t total() const { return total_; }
    // Of the `all` tokens of s, for those that it does not get with n of them.
    uint64_t of(const pb_sequence& s, uint32_t n, uint32_t all, uint32_t cached = 0) const {
        if (!(step_.raw.flags & PB_STEP_RESERVE_FULL)) return 0;
        const uint32_t in_all = step_.pages_for(s, all, cached);
        return in_all - std::min(in_all, step_.pages_for(s, n, cached));
    }
    void add(uint64_t pages) { total_ += pages; }
    void add(const pb_sequence& s, uint32_t n) { total_ += of(s, n, remaining(s)); } // it runs, and gets n tokens
    void remove(const pb_sequence& s, uint32_t n) { total_ -= of(s, n, remaining(s)); }

  private:
    const SchedulerStep& step_;
    uint64_t total_ = 0;
};

// Where a running sequence gives way: pages in use that s would share may be its own, and come free with it.
inline uint32_t pages_alone(const SchedulerStep& step, const pb_sequence& s, uint32_t n, uint32_t cached) {
    return step.pages_for(s, n, cached) + (cached > 0 ? s.cached_pages_in_use : 0);
}

}  // namespace detail

class StepPacker {
  public:
    StepPacker(const SchedulerStep& step, Plan& plan)
        : step_(step), plan_(plan), tokens_(step.raw.max_num_batched_tokens), blocks_(step.raw.free_pages),
          seats_(step.raw.max_num_seqs - std::min(step.raw.max_num_seqs, step.raw.running_count)), held_(step),
          later_(step) {}

    uint32_t tokens_left() const { return tokens_; }
    bool preempted_any() const { return pressed_; } // as pages ran out
    uint32_t seats_left() const { return seats_; }

    // Prompts get so many tokens of the step together, unless they may not be split.
    void limit_prompts(uint32_t tokens) { prompt_tokens_ = tokens; }

    // Takes a running one's seat and pages for another one, before any is planned.
    void give_up(const pb_sequence& s) {
        take_back(s);
        seats_ += 1;
    }

    // Before any is planned: whether s, which waits, would be admitted after all that run but `leaver`.
    bool fits_instead(const pb_sequence& s, const pb_sequence& leaver) const {
        uint64_t tokens = 0, pages = step_.raw.watermark_pages; // what the others take, and what they lack for later
        for (const pb_sequence& other : step_.running) {
            if (other.id == leaver.id) continue;
            const uint32_t n = std::min({remaining(other), tokens_, chunk_limit(other)});
            tokens += n;
            pages += step_.pages_for(other, n) + later_.of(other, n, remaining(other));
        }
        if (tokens >= tokens_) return false;
        const uint32_t whole = uncached(s);
        const uint32_t n = std::min({whole, tokens_ - static_cast<uint32_t>(tokens), chunk_limit(s)});
        if (n < whole && (!step_.chunked() || (s.flags & PB_SEQ_NO_CHUNK))) return false;
        const uint32_t cached = remaining(s) - whole;
        pages += detail::pages_alone(step_, s, n, cached) + later_.of(s, n, whole, cached);
        return pages <= uint64_t{blocks_} + leaver.pages_freed_if_preempted;
    }

    // Plans what is running: decodes first, then chunks in progress, each in order of admission. When pages run out the
    // sequence for which sooner(victim, other) holds against all others is preempted.
    template <class Sooner>
    void keep_running(Sooner&& sooner) {
        keep_decodes(sooner);
        keep_prompts(sooner);
    }
    // Drafts get what the other decodes' own tokens leave, and a page of tokens for each prompt in progress.
    template <class Sooner>
    void keep_decodes(Sooner&& sooner) {
        held_.hold(!prompts_planned_);
        for (const pb_sequence& s : step_.running) {
            if (!decoding(s)) continue;
            held_.let_go(s);
            if (!is_gone(s.id)) plan_running(s, sooner);
        }
    }
    // Decodes are not planned before others are admitted: what they lack counts where that looks ahead.
    void pass_over_decodes() {
        for (const pb_sequence& s : step_.running)
            if (decoding(s) && !is_gone(s.id)) later_.add(s, 0);
    }
    template <class Sooner>
    void keep_prompts(Sooner&& sooner) {
        for (const pb_sequence& s : step_.running) {
            if (decoding(s)) continue;
            held_.let_go(s);
            if (!is_gone(s.id)) plan_running(s, sooner);
        }
        prompts_planned_ = true;
    }

    // Plans one that waits. False: there is no room for it, and so for none after it.
    bool admit(const pb_sequence& s) {
        if (tokens_ == 0 || seats_ == 0) return false;
        const uint32_t whole = uncached(s), cached = remaining(s) - whole;
        uint32_t n = std::min({whole, tokens_, chunk_limit(s)});
        const bool alone = step_.running.empty() && plan_.size() == 0; // else a full cache could keep it out for ever
        const uint32_t kept_free = alone ? 0 : step_.raw.watermark_pages;
        // What does not fit the pages at once may in parts, as windows give pages back.
        if (alone) n = step_.tokens_in(s, n, blocks_, cached);
        if (n == 0 || (n < whole && (!step_.chunked() || (s.flags & PB_SEQ_NO_CHUNK)))) return false;
        const uint32_t pages =
            gone_.empty() ? step_.pages_for(s, n, cached) : detail::pages_alone(step_, s, n, cached);
        if (uint64_t{pages} + kept_free > blocks_) return false;
        const uint64_t later = later_.of(s, n, whole, cached);
        if (!alone && later + later_.total() + pages + kept_free > blocks_) return false;
        run(s, n);
        seats_ -= 1;
        blocks_ -= pages;
        later_.add(later);
        return true;
    }

  private:
    bool is_gone(uint64_t id) const { return std::find(gone_.begin(), gone_.end(), id) != gone_.end(); }

    // Of a prompt in this step.
    uint32_t chunk_limit(const pb_sequence& s) const {
        if (!step_.chunked() || decoding(s) || s.flags & PB_SEQ_NO_CHUNK) return UINT32_MAX;
        const uint32_t t = step_.raw.long_prefill_token_threshold;
        return std::min(t > 0 ? t : UINT32_MAX, prompt_tokens_);
    }

    void run(const pb_sequence& s, uint32_t n) {
        plan_.run(s, n);
        tokens_ -= n;
        if (!decoding(s) && prompt_tokens_ != UINT32_MAX) prompt_tokens_ -= std::min(prompt_tokens_, n);
    }

    template <class Sooner>
    void plan_running(const pb_sequence& s, Sooner&& sooner) {
        const uint32_t free = tokens_ - std::min(tokens_, held_.tokens()); // and so many may be drafts
        const uint32_t own = detail::without_drafts(s);
        uint32_t n = std::min({remaining(s), std::max(own, free), tokens_, chunk_limit(s)});
        if (n == 0 || plan_.size() == step_.raw.max_num_seqs) {
            later_.add(s, 0);
            return;
        }
        if (s.draft_tokens > 0 && n > own) { // drafts never cause preemption; which of them fit depends on no later one
            const uint64_t held = std::min<uint64_t>(blocks_, held_.pages());
            n = std::max(own, step_.tokens_in(s, n, blocks_ - static_cast<uint32_t>(held)));
        }
        uint32_t pages = step_.pages_for(s, n);
        for (; pages > blocks_; pages = step_.pages_for(s, n)) {
            const pb_sequence* victim = nullptr;
            for (const pb_sequence& other : step_.running)
                if (!is_gone(other.id) && (!victim || sooner(other, *victim))) victim = &other;
            if (step_.chunked() && gone_.size() + 1 == step_.running.size()) { // there is no victim but s
                n = step_.tokens_in(s, n, blocks_);
                if (n > 0) continue;
            }
            take_back(*victim);
            pressed_ = true;
            if (victim->id == s.id) return;
            n = std::min(own, std::max(n, std::min(tokens_, chunk_limit(s))));
        }
        run(s, n);
        blocks_ -= pages;
        later_.add(s, n);
    }

    void take_back(const pb_sequence& victim) {
        uint32_t n = 0;
        if (plan_.drop(victim.id, &n)) {
            tokens_ += n;
            blocks_ += step_.pages_for(victim, n);
            later_.remove(victim, n);
        }
        blocks_ += victim.pages_freed_if_preempted;
        plan_.preempt(victim);
        gone_.push_back(victim.id);
    }

    const SchedulerStep& step_;
    Plan& plan_;
    uint32_t tokens_, blocks_, seats_;
    uint32_t prompt_tokens_ = UINT32_MAX; // left for prompts; UINT32_MAX: as many as for all
    detail::HeldForOthers held_;
    detail::LaterPages later_;
    bool prompts_planned_ = false, pressed_ = false;
    std::vector<uint64_t> gone_; // preempted in this step
};

// The order of arrival, and its end first: what most policies preempt.
inline bool arrived_later(const pb_sequence& a, const pb_sequence& b) {
    return a.arrival_us != b.arrival_us ? a.arrival_us > b.arrival_us : a.id > b.id;
}

// If `max_num_seqs` is reached, preempts the running sequence with the highest key(s), of equals the latest, in favour
// of a waiting one whose key is lower by more than price(s) and that would be admitted in its place. At most one per
// step, so that new arrivals cannot displace every running sequence. A beam takes its whole search with it, which
// returns when there are seats for all of it: a beam gives way only where no other sequence may.
template <class Key, class Price>
void trade_seat(const SchedulerStep& step, StepPacker& packer, Key&& key, Price&& price) {
    if (packer.seats_left() > 0 || step.running.empty() || step.waiting.empty()) return;
    const auto later = [&](const pb_sequence& a, const pb_sequence& b) { // the order of admit_by
        return key(a) != key(b) ? key(a) > key(b) : arrived_later(a, b);
    };
    const pb_sequence *alone = nullptr, *beam = nullptr, *best = &step.waiting[0];
    for (const pb_sequence& s : step.running) {
        const pb_sequence*& worst = s.beams > 1 ? beam : alone;
        if (!worst || later(s, *worst)) worst = &s;
    }
    for (const pb_sequence& s : step.waiting)
        if (later(*best, s)) best = &s;
    for (const pb_sequence* worst : {alone, beam}) {
        if (!worst || !(key(*best) + price(*worst) < key(*worst)) || !packer.fits_instead(*best, *worst)) continue;
        packer.give_up(*worst);
        return;
    }
}

// Admits waiting sequences in ascending key(s), ties by arrival, until one does not fit. Sorts no more than can be
// admitted. None is admitted in a step that preempted.
template <class Key>
void admit_by(const SchedulerStep& step, StepPacker& packer, Key&& key) {
    if (packer.preempted_any() || step.waiting.empty() || packer.tokens_left() == 0 || packer.seats_left() == 0) return;
    struct Entry {
        double key;
        const pb_sequence* s;
    };
    std::vector<Entry> order;
    order.reserve(step.waiting.size());
    for (const pb_sequence& s : step.waiting) order.push_back({static_cast<double>(key(s)), &s});
    const auto first = [](const Entry& a, const Entry& b) {
        return a.key != b.key ? a.key < b.key : arrived_later(*b.s, *a.s);
    };
    const size_t max_admitted = std::min<size_t>(order.size(), step.raw.max_num_seqs);
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(max_admitted), order.end(), first);
    for (size_t i = 0; i < max_admitted; ++i)
        if (!packer.admit(*order[i].s)) return;
}

}  // namespace patchbay
