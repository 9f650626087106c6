#include "config/document.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/printable.hpp"
#include "config/slots.hpp"

namespace patchbay::config {
namespace {

// Of a key whose value may be written as one word: the key which that word stands for.
std::string_view shorthand(std::string_view key) {
    if (key == "model") return "path";
    return find_slot(key) ? "plugin" : "";
}

Node written_out(std::string_view word, const Node& value) {
    if (value.kind != NodeKind::kScalar) return value;
    Node out = Node::map(value.origin);
    out.entries.push_back({std::string(word), value.origin, value});
    return out;
}

// What is laid over a tree: another one, or more of the same, whose keys are meant together in whatever order.
enum class Over { kAnother, kMore };

// An empty section, except that of a slot which may be empty: there it means that.
bool changes_nothing(std::string_view key, const Node& base, const Node& over) {
    if (over.kind != NodeKind::kNull) return false;
    if (const SlotInfo* slot = find_slot(key); slot && !slot->choice) return false;
    return base.kind == NodeKind::kMap || (base.kind == NodeKind::kScalar && !shorthand(key).empty());
}

// Keys without a plugin's name are those of the slot's default, if it has one.
bool names_another_plugin(const SlotInfo& slot, const Node& base, const Node& over, Over how) {
    const Node *was = base.find("plugin"), *is = over.find("plugin");
    if (!is) return false;
    if (was) return was->text != is->text;
    return how == Over::kAnother && slot.choice && is->text != (EngineConfig{}.*slot.choice).plugin;
}

// A folder in the place of a shape has weights of its own.
void drop_shape(Node& model, const Node& over) {
    const auto has = [](const Node& map, const char* key) {
        const Node* value = map.find(key);
        return value && !(value->text.empty() && value->entries.empty());
    };
    if (!has(over, "path") || has(over, "shape") || !has(model, "shape") || has(model, "path")) return;
    std::erase_if(model.entries, [](const Entry& e) { return e.key == "shape" || e.key == "load_format"; });
}

Node laid_over(Node base, const Node& over, Over how);

Node value_laid_over(std::string_view key, Node base, const Node& over, Over how) {
    if (changes_nothing(key, base, over)) return base;
    const std::string_view word = shorthand(key);
    const bool has_keys = base.kind == NodeKind::kMap || over.kind == NodeKind::kMap;
    if (word.empty() || !has_keys) return laid_over(std::move(base), over, how);
    base = written_out(word, base);
    const Node top = written_out(word, over);
    if (const SlotInfo* slot = find_slot(key); slot && names_another_plugin(*slot, base, top, how))
        return top; // the former one's keys mean nothing to it
    if (key == "model" && how == Over::kAnother) drop_shape(base, top);
    return laid_over(std::move(base), top, how);
}

Node laid_over(Node base, const Node& over, Over how) {
    if (base.kind != NodeKind::kMap || over.kind != NodeKind::kMap) return over;
    for (const Entry& entry : over.entries) {
        const auto same =
            std::find_if(base.entries.begin(), base.entries.end(), [&](const Entry& e) { return e.key == entry.key; });
        if (same == base.entries.end()) {
            base.entries.push_back(entry);
        } else {
            same->key_origin = entry.key_origin;
            same->value = value_laid_over(entry.key, std::move(same->value), entry.value, how);
        }
    }
    return base;
}

}  // namespace

Origin Origin::automatic(std::string reason) {
    return {Kind::kAutomatic, std::make_shared<const std::string>(std::move(reason)), 0, 0};
}
Origin Origin::flag(std::string flag) {
    return {Kind::kFlag, std::make_shared<const std::string>(std::move(flag)), 0, 0};
}

std::string Origin::text() const {
    switch (kind) {
        case Kind::kFile: return (name ? *name : "") + ":" + std::to_string(line) + ":" + std::to_string(column);
        case Kind::kAutomatic: return "automatic: " + (name ? *name : "");
        case Kind::kFlag: return "command line " + (name ? *name : "");
        case Kind::kDefault: break;
    }
    return "default";
}

Node Node::scalar(std::string text, Origin origin) {
    Node node;
    node.kind = NodeKind::kScalar;
    node.text = std::move(text);
    node.origin = std::move(origin);
    return node;
}

Node Node::string(std::string text, Origin origin) {
    Node node = scalar(std::move(text), std::move(origin));
    node.quoted = true;
    return node;
}

Node Node::list(Origin origin) {
    Node node;
    node.kind = NodeKind::kList;
    node.origin = std::move(origin);
    return node;
}

Node Node::map(Origin origin) {
    Node node;
    node.kind = NodeKind::kMap;
    node.origin = std::move(origin);
    return node;
}

const Node* Node::find(std::string_view key) const {
    for (const Entry& entry : entries)
        if (entry.key == key) return &entry.value;
    return nullptr;
}

const Node* Node::at(std::string_view path) const {
    const Node* node = this;
    while (node && !path.empty()) {
        const size_t dot = path.find('.');
        node = node->find(path.substr(0, dot));
        path = dot == path.npos ? std::string_view{} : path.substr(dot + 1);
    }
    return node;
}

void Node::set(std::string key, Node value) {
    for (Entry& entry : entries)
        if (entry.key == key) {
            entry.value = std::move(value);
            return;
        }
    Origin key_origin = value.origin;
    entries.push_back({std::move(key), std::move(key_origin), std::move(value)});
}

std::string Node::describe() const {
    switch (kind) {
        case NodeKind::kNull: return "empty";
        case NodeKind::kScalar: return (quoted ? "the string '" : "'") + printable(text) + "'";
        case NodeKind::kList: return items.empty() ? "an empty list" : "a list";
        case NodeKind::kMap: break;
    }
    return entries.empty() ? "an empty map" : "a map";
}

void Faults::add(const Origin& origin, std::string text) { faults_.push_back({origin, std::move(text)}); }

std::vector<std::string> Faults::lines() const {
    std::vector<const Fault*> sorted;
    for (const Fault& fault : faults_) sorted.push_back(&fault);
    const auto place = [](const Fault* f) {
        return std::tuple(f->origin.kind, f->origin.name ? *f->origin.name : "", f->origin.line, f->origin.column);
    };
    std::stable_sort(sorted.begin(), sorted.end(), [&](const Fault* a, const Fault* b) { return place(a) < place(b); });
    std::vector<std::string> out;
    for (const Fault* fault : sorted) {
        const Origin& o = fault->origin;
        const std::string where = o.kind == Origin::Kind::kFile   ? o.text() + ": "
                                  : o.kind == Origin::Kind::kFlag ? *o.name + ": "
                                                                  : "";
        std::string line = printable_message(where + fault->text); // names are untrusted
        if (out.empty() || out.back() != line) out.push_back(std::move(line)); // one fault of several slots
    }
    return out;
}

Failure Faults::failure() const {
    constexpr size_t kMaxErrors = 100; // a longer list is not read, and a file may have a fault in each byte
    std::string text;
    const auto all = lines();
    for (size_t i = 0; i < std::min(all.size(), kMaxErrors); ++i) text += (i == 0 ? "" : "\n") + all[i];
    if (all.size() > kMaxErrors) text += "\nand " + std::to_string(all.size() - kMaxErrors) + " more";
    return fail(StatusCode::kInvalid, std::move(text));
}

Node merge(Node base, const Node& over) { return laid_over(std::move(base), over, Over::kAnother); }

Result<Node> expand_dotted(const Node& map, const DocumentLimits& limits) {
    Node out = Node::map(map.origin);
    for (const Entry& entry : map.entries) {
        const auto dots = static_cast<size_t>(std::count(entry.key.begin(), entry.key.end(), '.'));
        Faults faults;
        if (dots >= limits.depth)
            faults.add(entry.key_origin, "key '" + printable(entry.key) + "' is nested more than " +
                                             std::to_string(limits.depth) + " levels deep");
        else if (entry.key.starts_with('.') || entry.key.ends_with('.') || entry.key.find("..") != entry.key.npos ||
                 entry.key.empty())
            faults.add(entry.key_origin,
                       "key '" + printable(entry.key) + "' is not a dotted path such as engine.max_num_seqs");
        if (faults.any()) return faults.failure();
        Node nested = entry.value;
        std::string_view path = entry.key;
        while (true) { // from the innermost key outwards
            const size_t dot = path.rfind('.');
            Node parent = Node::map(entry.key_origin);
            parent.entries.push_back(
                {std::string(dot == path.npos ? path : path.substr(dot + 1)), entry.key_origin, std::move(nested)});
            nested = std::move(parent);
            if (dot == path.npos) break;
            path = path.substr(0, dot);
        }
        out = laid_over(std::move(out), nested, Over::kMore);
    }
    return out;
}

std::string printable(std::string_view text) { return patchbay::printable(text, 100); }

}  // namespace patchbay::config
