// The checks of a plugin's library, a line each: `patchbay plugin test`, and the end of `patchbay plugin build`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "host/manifest.hpp"
#include "host/settings.hpp"

namespace patchbay::cli {

enum class DebugLines { kNone, kShown /* after a failed check, how a debugger runs it */ };
struct PluginCheck {
    std::string library;
    std::optional<uint32_t> timeout_s{};
    DebugLines debug = DebugLines::kNone;
    host::Settings settings{}; // with which the checks run once more; empty: they do not
};
// Probes the library with its defaults and writes its manifest. Then, with settings, probes each component that takes
// them, which leaves the manifest as it is. Fails with the first check that it does not pass.
Result<> check_plugin(const PluginCheck&);

// "hooks: plan, arrived; extensions: patchbay.component.configure/1 revision 1"
std::string found_in(const host::ComponentManifest&);

}  // namespace patchbay::cli
