#include "kv/prefix_watch.hpp"

#include "kv/prefix_length.hpp"

namespace patchbay::kv {

std::optional<size_t> PrefixWatch::add(std::span<const int32_t> tokens, const BlockKey& root) {
    size_t slot = 0;
    while (slot < kMaxPrompts && taken_[slot]) ++slot;
    if (slot == kMaxPrompts) return std::nullopt;
    pool_.changes().record(true);
    taken_.set(slot);
    prompts_[slot] = {tokens, root, {}, {}, {}};
    prompts_[slot].prefix = measure(slot);
    return slot;
}

void PrefixWatch::remove(size_t slot) {
    const Prompt& p = prompts_[slot];
    for (size_t i = 0; i < p.pages.size(); ++i) {
        p.pages[i]->prompts.reset(slot);
        if (p.pages[i]->prompts.none()) pages_.erase(in_group(p.keys[i / windows_.size()], i % windows_.size()));
    }
    prompts_[slot] = {};
    taken_.reset(slot);
    if (taken_.none()) pool_.changes().record(false);
}

PrefixWatch::Prompts PrefixWatch::update() {
    Prompts touched, changed;
    for (const BlockKey& key : pool_.changes().take()) {
        const auto at = pages_.find(key);
        if (at == pages_.end()) continue;
        const Presence now = pool_.identities().presence(key);
        if (now == at->second.presence) continue;
        at->second.presence = now;
        touched |= at->second.prompts;
    }
    for (size_t slot = 0; touched.any() && slot < kMaxPrompts; ++slot) {
        if (!touched[slot]) continue;
        const CachedPrefix now = measure(slot);
        changed[slot] = now != prompts_[slot].prefix;
        prompts_[slot].prefix = now;
    }
    return changed;
}

// By a block.
void PrefixWatch::lengthen(size_t slot) {
    Prompt& p = prompts_[slot];
    const size_t block = p.keys.size(), size = pool_.identities().block_size();
    const BlockKey parent = block == 0 ? p.root : p.keys.back();
    p.keys.push_back(child_key(parent, p.tokens.subspan(block * size, size)));
    for (size_t g = 0; g < windows_.size(); ++g) {
        const BlockKey key = in_group(p.keys.back(), g);
        const auto [at, is_new] = pages_.try_emplace(key);
        if (is_new) at->second.presence = pool_.identities().presence(key);
        at->second.prompts.set(slot);
        p.pages.push_back(&at->second);
    }
}

CachedPrefix PrefixWatch::measure(size_t slot) {
    const Prompt& p = prompts_[slot];
    const size_t groups = windows_.size();
    const uint32_t size = pool_.identities().block_size();
    const size_t full = p.tokens.empty() ? 0 : (p.tokens.size() - 1) / size; // the last token is to be computed
    PrefixLength length(windows_, size);
    for (size_t i = 0; i < full; ++i) {
        if (i == p.keys.size()) lengthen(slot);
        if (!length.add([&](size_t g) { return p.pages[i * groups + g]->presence != Presence::kAbsent; })) break;
    }
    CachedPrefix out{static_cast<uint32_t>(length.blocks() * size), 0};
    for (size_t g = 0; g < groups; ++g)
        for (size_t i = first_seen_block(windows_[g], out.tokens, size); i < length.blocks(); ++i)
            out.pages_in_use += p.pages[i * groups + g]->presence == Presence::kInUse;
    return out;
}

}  // namespace patchbay::kv
