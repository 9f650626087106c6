#include "engine/scheduling/prefix_hints.hpp"

#include <algorithm>

#include "engine/groups/beams.hpp"
#include "engine/groups/siblings.hpp"
#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

PrefixHints::PrefixHints(Sequences& sequences, kv::KvCache& kv, const Siblings& siblings, const BeamSearches& beams)
    : sequences_(sequences), kv_(kv), siblings_(siblings), beams_(beams) {}

std::span<const TokenId> PrefixHints::findable(const Sequence& s) const {
    const auto tokens = s.confirmed_tokens();
    return tokens.first(std::min<size_t>(tokens.size(), beams_.needed_from(s)));
}

pb_sequence PrefixHints::record(const Sequence& s) const {
    if (!s.kv.swapped.empty()) return record_of(s, {s.kv.swapped.tokens, 0}, kv_.shape().block_size());
    const kv::CachedPrefix found = cached(s);
    const uint32_t prompt = siblings_.source_of(s) ? s.prompt_count - 1 : 0;
    if (prompt <= found.tokens) return record_of(s, found, kv_.shape().block_size());
    pb_sequence out = record_of(s, {prompt, 0}, kv_.shape().block_size());
    // A sibling's pages take none of the free ones; the last is copied if it is not full.
    out.tokens_until_next_page = prompt / kv_.shape().block_size() * kv_.shape().block_size();
    return out;
}

// That pages are in use is not counted on where it may be old.
kv::CachedPrefix PrefixHints::cached(const Sequence& s) const {
    if (const auto at = slots_.find(s.id); at != slots_.end()) return kv_.prefixes().watched().prefix(at->second);
    return {s.kv.reads_prefixes ? kv_.prefixes().count_cached(findable(s), s.kv.salt) : 0, 0};
}

void PrefixHints::refresh(const Sequence& s) { sequences_.show(s, record(s)); }

void PrefixHints::refresh_siblings(RequestId request) {
    for (const Sequence* s : siblings_.of(request))
        if (s->place == Place::kWaiting && s->kv.swapped.empty() && !siblings_.source_of(*s)) refresh(*s);
}

void PrefixHints::forget(const Sequence& s) {
    const auto at = slots_.find(s.id);
    if (at == slots_.end()) return;
    kv_.prefixes().watched().remove(at->second);
    watched_[at->second] = nullptr;
    slots_.erase(at);
}

void PrefixHints::forget_all() {
    for (const Sequence* s : watched_)
        if (s) forget(*s);
    watched_at_ = kNever;
}

// The first ones in the queue; they take the places of sequences further back.
void PrefixHints::choose_watched() {
    const auto queue = sequences_.waiting().records();
    const auto records = queue.first(std::min(queue.size(), watched_.size()));
    std::vector<const Sequence*> missing;
    for (const pb_sequence& r : records) {
        const Sequence& s = *sequences_.find(r.id);
        if (!slots_.contains(s.id) && s.kv.swapped.empty() && s.kv.reads_prefixes) missing.push_back(&s);
    }
    if (missing.size() > watched_.size() - kv_.prefixes().watched().count()) {
        const QueueTicket last = sequences_.find(records.back().id)->ticket;
        for (const Sequence* s : watched_)
            if (s && s->ticket > last) forget(*s);
    }
    for (const Sequence* s : missing) {
        if (const auto slot = kv_.prefixes().watch(findable(*s), s->kv.salt)) {
            watched_[*slot] = s;
            slots_.emplace(s->id, *slot);
        }
        refresh(*s);
    }
}

// A sibling that goes on slides its window past the prompt that they would share.
void PrefixHints::update_those_with_siblings() {
    const auto windows = kv_.shape().windows();
    if (siblings_.all().empty() || std::ranges::all_of(windows, [](uint32_t w) { return w == 0; })) return;
    for (const auto& [id, all] : siblings_.all())
        for (const Sequence* s : all)
            if (s->place == Place::kWaiting && s->kv.swapped.empty()) refresh(*s);
}

void PrefixHints::update() {
    update_those_with_siblings();
    if (!kv_.prefixes().enabled()) return;
    if (sequences_.waiting().changes() != watched_at_) choose_watched();
    watched_at_ = sequences_.waiting().changes();
    const kv::PrefixWatch::Prompts changed = kv_.prefixes().watched().update();
    if (changed.none()) return;
    for (size_t slot = 0; slot < watched_.size(); ++slot)
        if (changed[slot] && watched_[slot]) refresh(*watched_[slot]);
}

}  // namespace patchbay::engine
