#include "top/components.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace patchbay::top {
namespace {

// Kinds that are not listed come last.
size_t place_of(const std::string& kind) {
    constexpr std::array<std::string_view, 7> kOrder = {"scheduler", "sampler", "proposer", "kv_policy",
                                                        "attention", "model",   "device"};
    return static_cast<size_t>(std::ranges::find(kOrder, kind) - kOrder.begin());
}

std::vector<Component> found_in(const metrics::Scrape& scrape, double min_info) {
    std::vector<Component> out;
    for (const metrics::ScrapedSeries& s : scrape.series("patchbay_plugin_info")) {
        const auto kind = s.labels.find("kind"), plugin = s.labels.find("plugin");
        if (s.value < min_info || kind == s.labels.end() || plugin == s.labels.end()) continue;
        const bool is_known = std::ranges::any_of(
            out, [&](const Component& c) { return c.kind == kind->second && c.plugin == plugin->second; });
        if (!is_known) out.push_back({kind->second, plugin->second}); // two builds of a name count together
    }
    std::ranges::stable_sort(out, {}, [](const Component& c) { return std::pair(place_of(c.kind), c.plugin); });
    return out;
}

}  // namespace

std::vector<Component> components_in_slots(const metrics::Scrape& scrape) { return found_in(scrape, 1); }

std::vector<Component> known_components(const metrics::Scrape& scrape) { return found_in(scrape, 0); }

}  // namespace patchbay::top
