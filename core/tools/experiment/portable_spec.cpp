#include "experiment/portable_spec.hpp"

#include <filesystem>
#include <set>

namespace patchbay::experiment {
namespace {

namespace fs = std::filesystem;
using config::Entry;
using config::Node;

using Keys = std::set<std::string>; // that name files

Keys keys_of(const host::Registry& registry) {
    Keys out = {"model", "model.path", "model.tokenizer", "at.swap.model", "workload.at.swap.model"};
    for (const host::Manifest& m : registry.manifests())
        for (const host::ComponentManifest& c : m.components)
            for (const host::ParamManifest& p : c.params)
                if (p.unit == "path") out.insert(c.kind + "." + p.name);
    return out;
}

bool names_a_file(const std::string& path, const Keys& keys) {
    return keys.contains(path) || path == "quality.text" ||
           (path.starts_with("workload.prompts.") && path.ends_with(".path"));
}

// As readers look for it: beside the file that names it, then in the current folder.
std::string absolute(const Node& named) {
    std::error_code error;
    if (named.origin.kind == config::Origin::Kind::kFile && named.origin.name) {
        const fs::path beside = fs::path(*named.origin.name).parent_path() / named.text;
        if (fs::exists(beside, error)) return fs::absolute(beside).lexically_normal().string();
    }
    return fs::exists(named.text, error) ? fs::absolute(named.text).lexically_normal().string() : named.text;
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

}  // namespace patchbay::experiment
