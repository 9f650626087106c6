#include "cli/shown_experiment.hpp"

#include "experiment/portable_spec.hpp"
#include "experiment/spec_load.hpp"

namespace patchbay::cli {
namespace {

using config::KeyInfo;
using config::Node;

// Keys that the file leaves out and that have a default, in the sections too.
void add_defaults(Node& map, const std::vector<KeyInfo>& keys) {
    for (const KeyInfo& key : keys) {
        if (key.type == config::ValueType::kMap) {
            const Node* given = map.find(key.name);
            Node section = given ? *given : Node::map();
            add_defaults(section, key.children);
            if (!section.entries.empty()) map.set(key.name, std::move(section));
        } else if (key.default_value && !map.find(key.name)) {
            const bool text = key.type == config::ValueType::kString;
            map.set(key.name, text ? Node::string(*key.default_value) : Node::scalar(*key.default_value));
        }
    }
}

}  // namespace

Node shown_experiment(const experiment::ExperimentSpec& spec, const host::Registry& registry,
                      const Explain& explain) {
    Node shown = experiment::portable(spec, registry);
    const auto choose = [&](const char* key, const std::string& value, const std::string& reason) {
        if (!spec.document.find(key)) shown.set(key, Node::string(value, config::Origin::automatic(reason)));
    };
    choose("name", spec.name, "the file's or folder's");
    // Not by its name: names of factors' variants hold paths as they were written.
    choose("baseline", "", spec.variants[spec.baseline].name + ", the first variant");
    add_defaults(shown, experiment::experiment_keys());
    // What the variants share; where it is no whole configuration (a model for each variant, say) only what is given.
    if (auto shared = config::load_engine_config(config::engine_part(shown), registry)) {
        explain(*shared);
        for (config::Entry& e : shared->effective.entries) shown.set(e.key, std::move(e.value));
    }
    return shown;
}

}  // namespace patchbay::cli
