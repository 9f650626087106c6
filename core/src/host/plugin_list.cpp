#include "host/plugin_list.hpp"

#include <map>

namespace patchbay::host {

std::string_view name_of(Usability state) {
    static constexpr std::string_view kNames[] = {"usable", "unavailable", "refused"};
    return kNames[static_cast<size_t>(state)];
}

std::vector<ListedComponent> list_components(const Registry& registry, std::string_view kind) {
    std::map<const Manifest*, std::string> faults; // of libraries, each read once
    const auto listed = [&](const ComponentManifest& c, const Manifest& m) -> ListedComponent {
        const auto [fault, is_new] = faults.try_emplace(&m);
        if (is_new) fault->second = Registry::fault_of(m);
        if (is_new && fault->second.empty()) fault->second = registry.disallowed(m);
        if (!fault->second.empty()) return {&c, &m, Usability::kRefused, fault->second};
        if (!c.unavailable.empty())
            return {&c, &m, Usability::kUnavailable, "not available on this machine: " + c.unavailable};
        const ComponentManifest* const first = registry.first(c.kind, c.name);
        if (first == &c) return {&c, &m, Usability::kUsable, ""};
        return {&c, &m, Usability::kRefused, "hidden by " + registry.plugin_of(*first)->library.string()};
    };
    std::vector<ListedComponent> out;
    for (const std::string_view k : kKinds)
        for (const Manifest& m : registry.manifests())
            for (const ComponentManifest& c : m.components)
                if (c.kind == k && (kind.empty() || kind == k)) out.push_back(listed(c, m));
    return out;
}

}  // namespace patchbay::host
