#include "host/allowed_plugins.hpp"

#include <algorithm>

#include "base/suggest.hpp"

namespace patchbay::host {

std::string AllowedPlugins::fault_of(const std::filesystem::path& library, const std::string& sha256) const {
    const std::string file = library.filename().string();
    const auto at = digests.find(file);
    const std::string got = library.string() + ": its SHA-256 is " + sha256 + ", ";
    if (at == digests.end()) {
        std::vector<std::string> known;
        for (const auto& [name, unused] : digests) known.push_back(name);
        return got + "and allowed_plugins does not name " + file + did_you_mean(file, known);
    }
    if (std::ranges::find(at->second, sha256) != at->second.end()) return "";
    std::string expected;
    for (const std::string& digest : at->second) expected += (expected.empty() ? "" : " or ") + digest;
    return got + "expected " + (expected.empty() ? "none" : expected) + " by allowed_plugins";
}

}  // namespace patchbay::host
