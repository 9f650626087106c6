#include "experiment/portable_spec.hpp"

#include <filesystem>

namespace patchbay::experiment {
namespace {

namespace fs = std::filesystem;
using config::Entry;
using config::Node;

bool names_a_file(const std::string& path) {
    return path == "model" || path == "model.path" || path == "model.tokenizer" ||
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

void make_absolute(Node& node, const std::string& path) {
    if (node.kind == config::NodeKind::kScalar && !node.text.empty() && names_a_file(path))
        node = Node::string(absolute(node), node.origin);
    for (Entry& e : node.entries) make_absolute(e.value, path.empty() ? e.key : path + "." + e.key);
    for (Node& item : node.items) make_absolute(item, path);
}

}  // namespace

Node portable(const ExperimentSpec& spec) {
    Node document = spec.document;
    for (Entry& e : document.entries) {
        if (e.key == "variants")
            for (Entry& variant : e.value.entries) make_absolute(variant.value, "");
        else
            make_absolute(e.value, e.key == "factors" ? "" : e.key);
    }
    if (!document.find("name")) document.set("name", Node::string(spec.name));
    return document;
}

}  // namespace patchbay::experiment
