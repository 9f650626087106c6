#include "engine/groups/siblings.hpp"

#include <algorithm>
#include <iterator>

#include "engine/request/sequence.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

void Siblings::add(std::vector<Sequence*> all) {
    const RequestId request = all.front()->id;
    all_.emplace(request, std::move(all));
}

void Siblings::hold(const Sequence& first) { holding_.insert(first.id); }

bool Siblings::holds(const Sequence& s) const { return holding_.contains(s.id); }

std::vector<Sequence*> Siblings::release(const Sequence& first) {
    holding_.erase(first.id);
    std::vector<Sequence*> held;
    std::ranges::copy_if(all_.at(first.group), std::back_inserter(held),
                         [&](const Sequence* s) { return s != &first && s->place == Place::kHeld && !s->ended; });
    if (held.size() > 1 && first.ended && !kv_.prefixes().enabled()) {
        holding_.insert(held.front()->id);
        held.resize(1);
    }
    return held;
}

bool Siblings::leave(const Sequence& s) {
    holding_.erase(s.id);
    const auto at = all_.find(s.group);
    if (at == all_.end()) return false;
    std::erase(at->second, &s);
    if (!at->second.empty()) return false;
    all_.erase(at);
    return true;
}

std::span<Sequence* const> Siblings::of(RequestId request) const {
    const auto at = all_.find(request);
    return at == all_.end() ? std::span<Sequence* const>() : std::span<Sequence* const>(at->second);
}

const Sequence* Siblings::source_of(const Sequence& s) const {
    const uint32_t prompt = s.prompt_count - 1;
    for (const Sequence* other : of(s.group))
        if (other != &s && other->place == Place::kRunning && !other->ended && other->computed >= prompt &&
            kv_.tables().can_fork(other->kv.table, prompt))
            return other;
    return nullptr;
}

}  // namespace patchbay::engine
