#include "engine/swap/candidate.hpp"

#include <optional>
#include <utility>

#include "base/refusals.hpp"
#include "config/engine_config.hpp"
#include "engine/swap/swap_port.hpp"
#include "host/library.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"
#include "host/slot.hpp"

namespace patchbay::engine {
namespace {

// Of "none", as a configuration that has no such component might say it. What was made for drafts and for records of
// cached pages stays as long as the engine.
std::optional<Failure> asks_to_empty(const std::string& kind, const std::string& name) {
    if (name != "none" || (kind != "proposer" && kind != "kv_policy")) return std::nullopt;
    std::string how = "start it again without '" + kind + ":'";
    if (kind == "proposer") how += ", or with speculative.mode: adaptive, which drafts only where that pays";
    return unsupported("the " + kind + " can only be exchanged for another one while the engine runs, not taken out (" +
                       how + ")");
}

}  // namespace

Constructed find_and_construct(SwapPort& port, const CandidateInputs& in, host::Identity& to) {
    const std::string& name = in.choice.plugin;
    const auto found = in.registry.find(to.kind, name);
    if (const auto emptied = asks_to_empty(to.kind, name); emptied && !found && port.takes_swaps())
        return {nullptr, "find", *emptied};
    if (!found) return {nullptr, "find", found.failure()};
    if (const auto taken = port.takes_swaps(); !taken) return {nullptr, "find", taken.failure()};
    const host::Manifest& plugin = *in.registry.plugin_of(**found);
    to.version = (*found)->version;
    to.sha256 = plugin.sha256;
    to.build = plugin.build;
    to.path = plugin.library.string();
    const host::Settings settings = host::with_absolute_paths(**found, in.choice.settings);
    if (const auto faults = host::check_settings(**found, settings); !faults.empty())
        return {nullptr, "create", invalid(faults[0].text)};
    if (const auto passed = in.prober.try_out(plugin, {to.kind, name, settings, {}}); !passed)
        return {nullptr, "probe", passed.failure()};
    auto library = host::Library::open(plugin.library, plugin.sha256);
    if (!library) return {nullptr, "create", library.failure()};
    const pb_component* type = (*library)->find(to.kind, name);
    if (!type) return {nullptr, "create", fail("its manifest promises what its library does not hold")};
    auto component = port.construct(*std::move(library), *type, settings, in.services);
    if (!component) return {nullptr, "create", component.failure()};
    if (const auto fits = port.fits(**component); !fits) return {nullptr, "create", fits.failure()};
    return {*std::move(component), {}, {}};
}

std::shared_ptr<host::Swap> prepare_swap(SwapPort& port, SwapSlot which, const CandidateInputs& in) {
    host::Identity to;
    to.kind = name_of(which);
    to.name = in.choice.plugin;
    Constructed candidate = find_and_construct(port, in, to);
    if (!candidate) return port.slot().line().refuse(to, candidate.phase, candidate.why, in.transaction);
    return port.slot().line().prepare(std::move(candidate.made), to, in.transaction);
}

}  // namespace patchbay::engine
