#include "engine/swap/candidate.hpp"

#include <utility>

#include "host/library.hpp"

namespace patchbay::engine {

std::shared_ptr<host::Swap> prepare_swap(SwapPort& port, SwapSlot which, const CandidateInputs& in) {
    const std::string kind(name_of(which));
    const auto& [name, settings] = in.choice;
    host::Slot& slot = port.slot();
    host::Identity to;
    to.kind = kind;
    to.name = name;
    const auto found = in.registry.find(kind, name);
    if (!found) return slot.refuse(to, "find", found.error());
    if (const auto taken = port.takes_swaps(); !taken) return slot.refuse(to, "find", taken.error());
    const host::Manifest& plugin = *in.registry.plugin_of(**found);
    to.version = (*found)->version;
    to.sha256 = plugin.sha256;
    to.build = plugin.build;
    to.path = plugin.library.string();
    if (const auto faults = host::check_settings(**found, settings); !faults.empty())
        return slot.refuse(to, "create", faults[0].text);
    if (const auto passed = in.prober.try_out(plugin, {kind, name, settings}); !passed)
        return slot.refuse(to, "probe", passed.error());
    auto library = host::Library::open(plugin.library, plugin.sha256);
    if (!library) return slot.refuse(to, "create", library.error());
    const pb_component* type = (*library)->find(kind, name);
    if (!type) return slot.refuse(to, "create", "its manifest promises what its library does not hold");
    auto component = port.construct(*std::move(library), *type, settings, in.services);
    if (!component) return slot.refuse(to, "create", component.error());
    if (const auto fits = port.fits(**component); !fits) return slot.refuse(to, "create", fits.error());
    return slot.prepare(*std::move(component), to);
}

}  // namespace patchbay::engine
