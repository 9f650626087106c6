#include "experiment/portable_spec.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "experiment/path_key.hpp"

namespace patchbay::experiment {
namespace {

namespace fs = std::filesystem;
using Keys = std::set<std::string>; // that name files

Keys keys_of(const host::Registry& registry) {
    Keys out = {"model", "model.path", "model.tokenizer", "at.swap.model", "workload.at.swap.model"};
    for (const host::Manifest& m : registry.manifests())
        for (const host::ComponentManifest& c : m.components)
            for (const host::ParamManifest& p : c.params)
                for (const char* where : {"", "at.swap.", "workload.at.swap."})
                    if (p.unit == "path") out.insert(where + c.kind + "." + p.name);
    return out;
}

bool names_a_file(const std::string& path, const Keys& keys) {
    return keys.contains(path) || path == "quality.text" ||
           (path.starts_with("workload.prompts.") && path.ends_with(".path"));
}

std::string absolute(const Node& named) {
    std::error_code error;
    const fs::path found = beside_or_here(named, named.text);
    return fs::exists(found, error) ? fs::absolute(found).lexically_normal().string() : named.text;
}

void make_absolute(Node& node, const std::string& path, const Keys& keys) {
    if (node.kind == config::NodeKind::kScalar && !node.text.empty() && names_a_file(path, keys))
        node = Node::string(absolute(node), node.origin);
    for (Entry& e : node.entries) make_absolute(e.value, path.empty() ? e.key : path + "." + e.key, keys);
    for (Node& item : node.items) make_absolute(item, path, keys);
}

}  // namespace

Node portable(const ExperimentSpec& spec, const host::Registry& registry) {
    const Keys keys = keys_of(registry);
    Node document = spec.document;
    for (Entry& e : document.entries) {
        if (e.key == "variants")
            for (Entry& variant : e.value.entries) make_absolute(variant.value, "", keys);
        else
            make_absolute(e.value, e.key == "factors" ? "" : e.key, keys);
    }
    if (!document.find("name")) document.set("name", Node::string(spec.name));
    return document;
}

Result<Node> only(const ExperimentSpec& spec, const std::vector<std::string>& names) {
    std::vector<std::string> all;
    for (const VariantSpec& v : spec.variants) all.push_back(v.name);
    for (const std::string& name : names)
        if (std::ranges::find(all, name) == all.end())
            return not_found("no variant '" + config::printable(name) + "'" + did_you_mean(name, all));
    Node variants = Node::map();
    std::string baseline;
    for (size_t v = 0; v < spec.variants.size(); ++v) {
        const VariantSpec& given = spec.variants[v];
        if (std::ranges::find(names, given.name) == names.end()) continue;
        Node patch = given.patch;
        if (!given.at.empty()) patch.set("at", given.at_given);
        variants.set(given.name, std::move(patch));
        if (baseline.empty() || v == spec.baseline) baseline = given.name;
    }
    Node document = spec.document;
    std::erase_if(document.entries, [](const Entry& e) { return e.key == "factors"; });
    document.set("variants", std::move(variants));
    document.set("baseline", Node::string(baseline));
    return document;
}

}  // namespace patchbay::experiment
