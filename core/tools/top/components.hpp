// The components that an engine's metrics name, in the order of the pipeline.
#pragma once
#include <string>
#include <vector>

#include "metrics/scrape.hpp"

namespace patchbay::top {

struct Component {
    std::string kind, plugin;
    metrics::Labels labels() const { return {{"kind", kind}, {"plugin", plugin}}; }
};

std::vector<Component> components_in_slots(const metrics::Scrape&);
std::vector<Component> known_components(const metrics::Scrape&); // that are or were in a slot

}  // namespace patchbay::top
