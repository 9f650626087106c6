#include "experiment/matrix.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/refusals.hpp"
#include "experiment/draws.hpp"

namespace patchbay::experiment {
namespace {

// A plain value by itself, of a path the last part, so that a folder is named alike wherever it lies; {plugin: ngram,
// n: 3} as "ngram n=3".
std::string value_name(const config::Node& value) {
    if (value.kind == config::NodeKind::kScalar) {
        const std::filesystem::path path(value.text);
        return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
    }
    std::string name;
    if (value.kind == config::NodeKind::kList) {
        for (const config::Node& item : value.items) name += (name.empty() ? "" : ",") + value_name(item);
        return "[" + name + "]";
    }
    if (value.kind != config::NodeKind::kMap) return "none";
    for (const auto& entry : value.entries)
        name += (name.empty() ? "" : " ") + (entry.key == "plugin" || entry.key == "path" ? "" : entry.key + "=") +
                value_name(entry.value);
    return name;
}

std::string value_text(const config::Node& value) {
    if (value.kind != config::NodeKind::kList) return value.text;
    std::string out;
    for (const config::Node& item : value.items) out += (out.empty() ? "" : ", ") + value_text(item);
    return "[" + out + "]";
}

}  // namespace

Result<std::vector<VariantSpec>> expand(const std::vector<Factor>& factors) {
    struct Combination {
        std::string name;
        config::Node settings = config::Node::map(); // dotted path → value
    };
    std::vector<Combination> all{{}};
    for (const Factor& f : factors) {
        std::vector<Combination> longer;
        for (const Combination& c : all)
            for (const config::Node& value : f.values) {
                Combination with = c;
                with.settings.set(f.path, value);
                with.name +=
                    (with.name.empty() ? "" : " ") + f.path.substr(f.path.rfind('.') + 1) + "=" + value_name(value);
                longer.push_back(std::move(with));
            }
        all = std::move(longer);
    }
    std::vector<VariantSpec> variants;
    std::set<std::string> names;
    for (Combination& c : all) {
        if (!names.insert(c.name).second)
            return invalid("two variants would be named '" + config::printable(c.name) + "'");
        PB_TRY(config::Node patch, config::expand_dotted(c.settings));
        variants.push_back({.name = std::move(c.name), .patch = std::move(patch)});
    }
    return variants;
}

std::vector<Leaf> leaves_of(const config::Node& node) {
    std::vector<Leaf> leaves;
    for (const config::Entry& entry : node.entries) {
        if (entry.value.kind != config::NodeKind::kMap) leaves.emplace_back(entry.key, value_text(entry.value));
        for (auto& [path, value] : leaves_of(entry.value))
            leaves.emplace_back(entry.key + "." + path, std::move(value));
    }
    return leaves;
}

std::vector<std::string> leaf_paths(const config::Node& node) {
    std::vector<std::string> paths;
    for (auto& [path, value] : leaves_of(node)) paths.push_back(std::move(path));
    return paths;
}

std::vector<RunSlot> run_order(size_t variants, uint32_t repeats, uint64_t seed) {
    std::vector<RunSlot> order;
    for (uint32_t r = 0; r < repeats; ++r) {
        auto of_pair = Draws(seed, r / 2).permutation(Purpose::kRunOrder, static_cast<uint32_t>(variants));
        if (r % 2 == 1) std::reverse(of_pair.begin(), of_pair.end());
        for (const uint32_t v : of_pair) order.push_back({v, r});
    }
    return order;
}

std::vector<ConfigDifference> differences(const FlatTree& baseline, const FlatTree& variant,
                                          const std::vector<std::string>& declared) {
    std::set<std::string> paths;
    for (const auto& [path, value] : baseline) paths.insert(path);
    for (const auto& [path, value] : variant) paths.insert(path);
    const auto value_at = [](const FlatTree& tree, const std::string& path) {
        const auto at = tree.find(path);
        return at == tree.end() ? std::string() : at->second;
    };
    std::vector<ConfigDifference> out;
    for (const std::string& path : paths) {
        const std::string a = value_at(baseline, path), b = value_at(variant, path);
        if (a == b && baseline.contains(path) == variant.contains(path)) continue;
        const bool allowed = std::any_of(declared.begin(), declared.end(),
                                         [&](const std::string& d) { return path == d || path.starts_with(d + "."); });
        out.push_back({path, a, b, allowed});
    }
    return out;
}

}  // namespace patchbay::experiment
