// The components that a registry knows, each with why it cannot be used. Used by `patchbay plugin` and the server.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "host/registry.hpp"

namespace patchbay::host {

#define PB_WORD(name, word, Type) #word,
inline constexpr auto kKinds = std::to_array<const char*>({PB_EACH_KIND(PB_WORD)});
#undef PB_WORD

enum class Usability { kUsable, kUnavailable /* on this machine */, kRefused };
std::string_view name_of(Usability); // "usable", "unavailable", "refused"

struct ListedComponent { // of the registry, which outlives it
    const ComponentManifest* component;
    const Manifest* plugin;
    Usability state = Usability::kUsable;
    std::string fault; // why it cannot be used
};

// By kind, in search order; of one kind, or of all where it is empty. Reads each library, to compare its hash.
std::vector<ListedComponent> list_components(const Registry&, std::string_view kind = {});

}  // namespace patchbay::host
