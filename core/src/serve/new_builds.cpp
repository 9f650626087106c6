#include "serve/new_builds.hpp"

#include <algorithm>

#include "engine/swap/swap_slot.hpp"

namespace patchbay::serve {
namespace {

// The plugin that stands where the one in the slot does, null: none. What is in the model's slot goes by its
// checkpoint, and is known by its library alone.
const host::Manifest* stands_for(const host::Identity& now, const host::Registry& registry) {
    if (now.kind == name_of(engine::SwapSlot::kModel)) {
        const auto& all = registry.manifests();
        const auto at = std::ranges::find(all, now.path, [](const host::Manifest& m) { return m.library.string(); });
        return at == all.end() ? nullptr : &*at;
    }
    const auto found = registry.find(now.kind, now.name);
    return found ? registry.plugin_of(**found) : nullptr;
}

}  // namespace

std::vector<NewBuild> NewBuilds::look(const JournalState& journal, const host::Registry& registry) {
    std::vector<NewBuild> out;
    const std::lock_guard lock(mutex_);
    for (const SlotStatus& slot : journal.slots) {
        const host::Identity& now = slot.identity;
        if (!engine::swap_slot(now.kind)) continue;
        const host::Manifest* const found = stands_for(now, registry);
        if (!found) continue;
        const host::Manifest& plugin = *found;
        const auto is_of_slot = [&](const NewBuild& b) { return b.kind == now.kind && b.plugin == now.name; };
        // One that another has taken the place of is new again once it comes back.
        std::erase_if(reported_, [&](const NewBuild& b) { return is_of_slot(b) && b.sha256 != plugin.sha256; });
        if (plugin.sha256 == now.sha256 || std::ranges::any_of(reported_, is_of_slot)) continue;
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
