// Plugins of the build tree, and the program that tries them out before a swap.
#pragma once
#include <stdexcept>
#include <string>

#include "host/prober.hpp"
#include "host/registry.hpp"
#include "paths.hpp"

namespace patchbay::engine::testing {

inline const host::Registry& built_plugins() {
    static const host::Registry all = [] {
        auto opened = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
        if (!opened) throw std::runtime_error(opened.error());
        return *std::move(opened);
    }();
    return all;
}

inline host::Prober& prober() {
    static host::Prober one(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    return one;
}

}  // namespace patchbay::engine::testing
