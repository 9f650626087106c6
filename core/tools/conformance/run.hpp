// Runs a library's checks in order and reports each as it begins and ends, so that a watcher from outside knows
// which one a crash belongs to.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/check.hpp"
#include "host/probe.hpp"
#include "host/manifest.hpp"

namespace patchbay::conformance {

struct Listener {
    std::function<void(const std::string& component, const std::string& check)> begin;
    std::function<void(const Outcome&)> end;
};

// Loads the library and puts every component through its checks, or only the one that is named, with its settings. The
// manifest, unless a check failed. check: of those of kinds only the one of this name; empty: all.
std::optional<host::Manifest> run_all(const std::filesystem::path& library,
                                      const std::optional<host::ProbedComponent>& only, const Listener&,
                                      const std::string& check = {});

// Of all checks there are, also those that run whatever `check` is.
std::vector<std::string> check_names();

}  // namespace patchbay::conformance
