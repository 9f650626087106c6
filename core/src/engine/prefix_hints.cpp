// What schedulers are shown of waiting sequences' cached prefixes: true at each plan for the first ones in the queue,
// as of their arrival for those after them. What counts is what adopt() finds when the plan is applied.
#include <algorithm>

#include "engine/state.hpp"

namespace patchbay::engine {

void Engine::State::update_record(const Sequence& s) { waiting.replace(s.ticket, waiting_record(s)); }

void Engine::State::watch_prefix(Sequence& s) {
    s.watched = kv->watch_prefix(findable_prefix(s), s.salt);
    if (s.watched) watched[*s.watched] = &s;
}

void Engine::State::unwatch_prefix(Sequence& s) {
    if (!s.watched) return;
    kv->watch().remove(*s.watched);
    watched[*s.watched] = nullptr;
    s.watched.reset();
}

// Of those in front; the places that they take are those of sequences further back.
void Engine::State::choose_watched() {
    const auto records = waiting.records().first(std::min(waiting.records().size(), watched.size()));
    std::vector<Sequence*> missing;
    for (const pb_sequence& r : records) {
        Sequence& s = *sequences.at(r.id);
        if (!s.watched && s.swapped.empty() && s.reads_prefixes()) missing.push_back(&s);
    }
    if (missing.size() > watched.size() - kv->watch().count()) {
        const WaitingQueue::Ticket last = sequences.at(records.back().id)->ticket;
        for (Sequence* s : watched)
            if (s && s->ticket > last) unwatch_prefix(*s);
    }
    for (Sequence* s : missing) {
        watch_prefix(*s);
        update_record(*s);
    }
}

// Whose sibling goes on: its window passes the prompt that they would share.
void Engine::State::update_siblings() {
    if (siblings.empty() || std::ranges::all_of(kv->windows(), [](uint32_t w) { return w == 0; })) return;
    for (const auto& [id, all] : siblings)
        for (const Sequence* s : all)
            if (s->place == Place::kWaiting && s->swapped.empty()) update_record(*s);
}

void Engine::State::update_hints() {
    update_siblings();
    if (!kv->caches_prefixes()) return;
    if (waiting.changes() != watched_at) choose_watched();
    watched_at = waiting.changes();
    const kv::PrefixWatch::Prompts changed = kv->watch().update();
    if (changed.none()) return;
    for (size_t slot = 0; slot < watched.size(); ++slot)
        if (changed[slot]) update_record(*watched[slot]);
}

}  // namespace patchbay::engine
