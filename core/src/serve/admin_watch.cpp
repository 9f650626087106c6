// The part of Admin that watches plugin folders: a library that appears is probed, a manifest makes it known, and a new
// build of what is in a slot is announced or adopted.
#include <spdlog/spdlog.h>

#include "engine/engine_control.hpp"
#include "host/probe.hpp"
#include "serve/admin.hpp"

namespace patchbay::serve {

using config::WatchMode;

Result<> Admin::watch_folders() {
    if (options_.requested.swap.watch == WatchMode::kOff) return {};
    PB_TRY(watch_, FolderWatch::start(registry()->folders(),
                                      [this](const auto& file, int stop) { on_file(file, stop); }));
    return {};
}

// What is pinned is not run before its digest is checked, which its manifest has to name first.
void Admin::on_file(const std::filesystem::path& file, int stop) {
    if (file.extension() == ".so" && !options_.requested.allowed_plugins) {
        host::ProbeOptions options;
        options.stop = stop;
        const auto report = host::probe_and_record(file, options);
        if (!report) spdlog::warn("{}: {}", file.string(), report.error());
        else if (report->verdict == host::Verdict::kRefused)
            spdlog::warn("{}: refused by its probe: {}: {}", file.string(), report->check, report->reason);
        return; // its manifest is the next file
    }
    if (!file.string().ends_with(".plugin.json")) return;
    if (const auto found = find_again(); !found) return spdlog::warn("plugins: {}", found.error());
    for (const NewBuild& build : new_builds_.look(controlled_.journal.state(), *registry())) {
        spdlog::warn("new build of {} '{}': {} ({})", build.kind, build.plugin, build.library, build.sha256);
        controlled_.metrics.on_new_build(build.kind);
        if (options_.requested.swap.watch == WatchMode::kAdopt) adopt(build);
    }
}

// With the settings of the one that it replaces; a model's with the weights that are in use.
void Admin::adopt(const NewBuild& build) {
    const auto slot = engine::swap_slot(build.kind);
    SwapOrder order;
    order.parts.push_back({*slot, {build.plugin, {}}});
    if (*slot == engine::SwapSlot::kModel) {
        const JournalState journal = controlled_.journal.state();
        const SlotStatus* const now = journal.slot(build.kind);
        order.parts[0].choice.plugin = now && now->generation > 1 ? now->identity.name : controlled_.model().path;
    }
    const bool called = controlled_.engine.call(
        [&](engine::Engine& engine) { order.parts[0].choice.settings = engine.control().settings(*slot); });
    if (!called) return;
    order.registry = registry();
    order.done = [build](const Result<std::vector<host::SwapRecord>>& r) {
        if (!r) spdlog::warn("new build of {} '{}': {}", build.kind, build.plugin, r.error());
    }; // else the journal says what became of it
    if (const auto added = swaps_.add(std::move(order)); !added)
        spdlog::warn("new build of {} '{}': {}", build.kind, build.plugin, added.error());
}

}  // namespace patchbay::serve
