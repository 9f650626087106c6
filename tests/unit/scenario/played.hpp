// Scenarios given as text, for tests: what is wrong with one, or what came of it.
#pragma once
#include <string>

#include "scenario/load.hpp"
#include "scenario/play.hpp"
#include "paths.hpp"

namespace patchbay::scenario {

inline const host::Registry& registry() {
    static const auto all = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
    return *all;
}

inline Result<Scenario> load_text(const std::string& yaml) {
    PB_TRY(const config::Node root, config::parse_yaml(yaml, "s.yaml"));
    return load(root, registry());
}

inline std::string faults_of(const std::string& yaml) {
    const auto loaded = load_text(yaml);
    return loaded ? "" : loaded.error();
}

// "" where all is as expected; else the difference's text, or why nothing could be played.
inline std::string outcome_of(const std::string& yaml) {
    const auto loaded = load_text(yaml);
    if (!loaded) return loaded.error();
    host::Prober prober({.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    const auto played = play(*loaded, registry(), prober);
    if (!played) return played.error();
    return played->difference ? played->difference->text() : "";
}

inline std::string difference(const std::string& place, const std::string& expected, const std::string& got) {
    return "s.yaml:" + place + "\n  expected  " + expected + "\n  got       " + got;
}

}  // namespace patchbay::scenario
