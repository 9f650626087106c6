// The checks of a plugin's library, a line each: `patchbay plugin test`, and the end of `patchbay plugin build`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "host/manifest.hpp"

namespace patchbay::cli {

// Probes the library and writes its manifest. Fails with the first check that it does not pass.
enum class DebugLines { kNone, kShown /* after a failed check, how a debugger runs it */ };
Result<> check_plugin(const std::string& library, std::optional<uint32_t> timeout_s = {},
                      DebugLines debug = DebugLines::kNone);

// "hooks: plan, arrived; extensions: patchbay.component.configure/1 revision 1"
std::string found_in(const host::ComponentManifest&);

}  // namespace patchbay::cli
