// What may be in a library that cannot be used: for the end of a message that something was not found.
#pragma once
#include <string>

#include "host/registry.hpp"

namespace patchbay::cli {

// "; left out: mine/a.so: not probed yet (run …)", of the first such library outside the folder of the shipped plugins.
// Empty: there is none.
inline std::string left_out(const host::Registry& registry) {
    const std::string shipped = registry.folders().empty() ? "" : registry.folders().back().string(); // searched last
    for (const std::string& remark : registry.remarks())
        if (shipped.empty() || !remark.starts_with(shipped)) return "; left out: " + remark;
    return "";
}

}  // namespace patchbay::cli
