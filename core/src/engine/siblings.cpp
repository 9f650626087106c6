// Several outputs of one request (n > 1): sequences that share the KV of its prompt. The first one computes it while
// the others are held; then they take its pages over, but for the last token, whose logits each of them needs.
#include <algorithm>

#include "engine/state.hpp"

namespace patchbay::engine {

void Engine::State::add_siblings(Sequence& first) {
    std::vector<Sequence*>& all = siblings[first.id];
    all.push_back(&first);
    for (uint32_t i = 1; i < first.request.sampling.n; ++i) {
        auto made = make_sequence(first.request, i);
        made->group = first.id;
        made->place = Place::kHeld;
        made->delta = delta_of(*made);
        if (first.matcher) made->matcher = std::make_unique<grammar::Matcher>(*first.matcher);
        made->end_tokens = first.end_tokens;
        all.push_back(made.get());
        sequences.emplace(made->id, std::move(made));
    }
    first.holds_siblings = true;
}

// In front of those who wait, since they came with the first.
void Engine::State::release_siblings(Sequence& first) {
    first.holds_siblings = false;
    const std::vector<Sequence*>& all = siblings.at(first.group);
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
        Sequence& s = **at;
        if (s.place != Place::kHeld) continue;
        s.place = Place::kWaiting;
        s.ticket = waiting.push_front(waiting_record(s));
        waiting_tokens += s.confirmed();
        announce(waiting.records().front());
    }
}

void Engine::State::leave_siblings(Sequence& s) {
    const auto at = siblings.find(s.group);
    std::erase(at->second, &s);
    if (at->second.empty()) siblings.erase(at);
}

uint32_t Engine::State::forkable(const Sequence& s) const {
    const auto at = siblings.find(s.group);
    if (at == siblings.end() || kv->state_pages() > 0) return 0;
    const uint32_t prompt = s.prompt_count - 1;
    const bool is_there = std::any_of(at->second.begin(), at->second.end(), [&](const Sequence* other) {
        return other != &s && other->place == Place::kRunning && other->computed >= prompt;
    });
    return is_there ? prompt : 0;
}

bool Engine::State::fork(Sequence& s) {
    const uint32_t prompt = s.prompt_count - 1;
    for (const Sequence* other : siblings.at(s.group))
        if (other != &s && other->place == Place::kRunning && other->computed >= prompt &&
            kv->fork(other->table, prompt, s.table))
            return true;
    return false;
}

pb_sequence Engine::State::waiting_record(const Sequence& s) const {
    const uint32_t cached = kv->count_cached(s.confirmed_tokens()), prompt = forkable(s);
    pb_sequence out = record_of(s, std::max(cached, prompt), kv->block_size());
    // Unlike what is cached, a sibling's pages take none of the free ones; the last is copied if it is not full.
    if (prompt > cached) out.page_room = prompt / kv->block_size() * kv->block_size();
    return out;
}

uint32_t Engine::State::adopt(Sequence& s) {
    const uint32_t prompt = forkable(s);
    s.forked = prompt > 0 && prompt > kv->count_cached(s.confirmed_tokens()) && fork(s);
    return s.forked ? prompt : kv->adopt_prefix(s.table, s.confirmed_tokens());
}

}  // namespace patchbay::engine
