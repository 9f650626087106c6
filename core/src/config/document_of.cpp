#include "base/flat_string.hpp"
#include "config/load.hpp"
#include "config/slots.hpp"

namespace patchbay::config {
namespace {

Node node_of(const PluginChoice* choice) {
    if (!choice) return Node::string("none");
    Node out = Node::map();
    out.set("plugin", Node::string(choice->plugin));
    for (const auto& [key, value] : choice->settings) out.set(key, Node::scalar(value));
    return out;
}

Node node_of_flat(const std::string& value) { // of a shape: what flattening makes `value` of
    if (value == "[]") return Node::list();
    if (value == "{}") return Node::map();
    if (value.size() >= 2 && value.starts_with('"')) return Node::string(value.substr(1, value.size() - 2));
    return flat_string(value) == value ? Node::string(value) : Node::scalar(value);
}

}  // namespace

Node document_of(const EngineConfig& c, const host::Registry& registry) {
    Node given = Node::map(), model = Node::map(), shape = Node::map();
    for (const auto& [key, value] : c.model.shape) shape.set(key, node_of_flat(value));
    model.set("shape", std::move(shape));
    given.set("model", std::move(model));
    for (const SlotInfo& slot : slots()) given.set(slot.kind, node_of(slot.of(c)));
    EngineConfig all = c; // reading keeps, and shows, the values that are not given
    Faults ignored;       // a model folder that has gone, say: the reader of the tree will say so
    return engine_config_table(registry).read(given, all, ignored);
}

}  // namespace patchbay::config
