#include "serve/new_builds.hpp"

#include <algorithm>

#include "engine/swap/swap_slot.hpp"

namespace patchbay::serve {

std::vector<NewBuild> NewBuilds::look(const JournalState& journal, const host::Registry& registry) {
    std::vector<NewBuild> out;
    const std::lock_guard lock(mutex_);
    for (const SlotStatus& slot : journal.slots) {
        const host::Identity& now = slot.identity;
        const auto which = engine::swap_slot(now.kind);
        if (!which || *which == engine::SwapSlot::kModel) continue;
        const auto found = registry.find(now.kind, now.name);
        if (!found) continue;
        const host::Manifest& plugin = *registry.plugin_of(**found);
        const bool known = std::ranges::any_of(reported_, [&](const NewBuild& b) {
            return b.kind == now.kind && b.plugin == now.name && b.sha256 == plugin.sha256;
        });
        if (plugin.sha256 == now.sha256 || known) continue;
        out.push_back({now.kind, now.name, plugin.sha256, plugin.library.string()});
        reported_.push_back(out.back());
    }
    return out;
}

std::vector<NewBuild> NewBuilds::unused(const JournalState& journal) const {
    const std::lock_guard lock(mutex_);
    std::vector<NewBuild> out = reported_;
    std::erase_if(out, [&](const NewBuild& b) {
        const SlotStatus* const slot = journal.slot(b.kind);
        return !slot || slot->identity.name != b.plugin || slot->identity.sha256 == b.sha256;
    });
    return out;
}

}  // namespace patchbay::serve
