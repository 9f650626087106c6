#include "experiment/only.hpp"

#include <algorithm>

#include "base/refusals.hpp"
#include "base/suggest.hpp"

namespace patchbay::experiment {

Result<config::Node> only(const ExperimentSpec& spec, const std::vector<std::string>& names) {
    std::vector<std::string> all;
    for (const VariantSpec& v : spec.variants) all.push_back(v.name);
    for (const std::string& name : names)
        if (std::find(all.begin(), all.end(), name) == all.end())
            return not_found("no variant '" + config::printable(name) + "'" + did_you_mean(name, all));
    config::Node variants = config::Node::map();
    std::string baseline;
    for (size_t v = 0; v < spec.variants.size(); ++v) {
        const VariantSpec& given = spec.variants[v];
        if (std::find(names.begin(), names.end(), given.name) == names.end()) continue;
        config::Node patch = given.patch;
        if (!given.at.empty()) patch.set("at", given.at_given);
        variants.set(given.name, std::move(patch));
        if (baseline.empty() || v == spec.baseline) baseline = given.name;
    }
    config::Node document = spec.document;
    std::erase_if(document.entries, [](const config::Entry& e) { return e.key == "factors"; });
    document.set("variants", std::move(variants));
    document.set("baseline", config::Node::string(baseline));
    return document;
}

}  // namespace patchbay::experiment
