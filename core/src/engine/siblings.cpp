// Several outputs of one request (n > 1): sequences that share the KV of its prompt. The first one computes it while
// the others are held; then they take its pages over, but for the last token, whose logits each of them needs.
#include <algorithm>
#include <iterator>

#include "engine/state.hpp"

namespace patchbay::engine {

std::span<const TokenId> findable_prefix(const Sequence& s) {
    const auto tokens = s.confirmed_tokens();
    return tokens.first(std::min<size_t>(tokens.size(), needed_from(s)));
}

void Engine::State::add_siblings(Sequence& first) {
    std::vector<Sequence*>& all = siblings[first.id];
    all.push_back(&first);
    const uint32_t count = sequences_of(first.request.sampling);
    for (uint32_t i = 1; i < count; ++i) {
        auto made = make_sequence(first.request, i);
        made->group = first.id;
        made->place = Place::kHeld;
        made->delta = delta_of(*made);
        if (first.matcher) made->matcher = std::make_unique<grammar::Matcher>(*first.matcher);
        made->end_tokens = first.end_tokens;
        made->rules = first.rules;
        all.push_back(made.get());
        sequences.emplace(made->id, std::move(made));
    }
    if (first.request.sampling.beam_width > 0) add_beams(first);
    else first.holds_siblings = true;
}

// In front of those who wait, since they came with the first. Where it has ended and left nothing behind, the next one
// takes its place and holds the others.
void Engine::State::release_siblings(Sequence& first) {
    first.holds_siblings = false;
    std::vector<Sequence*> held;
    std::ranges::copy_if(siblings.at(first.group), std::back_inserter(held),
                         [](const Sequence* s) { return s->place == Place::kHeld; });
    if (held.size() > 1 && first.delta.finish != FinishReason::kNone && !kv->caches_prefixes()) {
        held.front()->holds_siblings = true;
        held.resize(1);
    }
    for (auto at = held.rbegin(); at != held.rend(); ++at) {
        Sequence& s = **at;
        s.place = Place::kWaiting;
        s.ticket = waiting.push_front(waiting_record(s));
        waiting_tokens += s.confirmed();
        s.announced = true;
        announce(waiting.records().front());
    }
}

void Engine::State::leave_siblings(Sequence& s) {
    const auto at = siblings.find(s.group);
    std::erase(at->second, &s);
    if (!at->second.empty()) return;
    siblings.erase(at);
    beams.erase(s.group);
}

const Sequence* Engine::State::source_of(const Sequence& s) const {
    const auto at = siblings.find(s.group);
    if (at == siblings.end()) return nullptr;
    const uint32_t prompt = s.prompt_count - 1;
    const auto found = std::find_if(at->second.begin(), at->second.end(), [&](const Sequence* other) {
        return other != &s && other->place == Place::kRunning && other->delta.finish == FinishReason::kNone &&
               other->computed >= prompt && kv->can_fork(other->table, prompt);
    });
    return found == at->second.end() ? nullptr : *found;
}

// Who counted on one that is gone is told what is there now.
void Engine::State::refresh_siblings(RequestId request) {
    const auto at = siblings.find(request);
    if (at == siblings.end()) return;
    for (const Sequence* s : at->second)
        if (s->place == Place::kWaiting && s->swapped.empty() && !source_of(*s)) update_record(*s);
}

pb_sequence Engine::State::waiting_record(const Sequence& s) const {
    if (!s.swapped.empty()) return record_of(s, {s.swapped.tokens, 0}, kv->block_size());
    const kv::CachedPrefix cached = cached_prefix(s);
    const uint32_t prompt = source_of(s) ? s.prompt_count - 1 : 0;
    if (prompt <= cached.tokens) return record_of(s, cached, kv->block_size());
    pb_sequence out = record_of(s, {prompt, 0}, kv->block_size());
    // A sibling's pages take none of the free ones; the last is copied if it is not full.
    out.page_room = prompt / kv->block_size() * kv->block_size();
    return out;
}

// Of cached tokens there are no logprobs. That pages are in use is not counted on where it may be old.
kv::CachedPrefix Engine::State::cached_prefix(const Sequence& s) const {
    if (s.watched) return kv->watch().prefix(*s.watched);
    return {s.reads_prefixes() ? kv->count_cached(findable_prefix(s), s.salt) : 0, 0};
}

uint32_t Engine::State::adopt(Sequence& s) {
    const Sequence* const source = source_of(s);
    const uint32_t prompt = s.prompt_count - 1;
    const uint32_t cached = s.reads_prefixes() ? kv->count_cached(findable_prefix(s), s.salt) : 0;
    s.forked = source && prompt > cached && kv->fork(source->table, prompt, s.table);
    if (s.forked || !s.reads_prefixes()) return s.forked ? prompt : 0;
    return kv->adopt_prefix(s.table, findable_prefix(s), s.salt);
}

}  // namespace patchbay::engine
