#include "config/load_parts.hpp"

#include <algorithm>

namespace patchbay::config {
namespace {

constexpr size_t kDigestDigits = 64;

bool is_digest(const std::string& text) {
    return text.size() == kDigestDigits && std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

std::vector<std::string> read_digests(const Entry& entry, Faults& faults) {
    std::vector<std::string> out;
    const auto take = [&](const Node& given) {
        if (given.kind == NodeKind::kScalar && is_digest(given.text)) return out.push_back(given.text);
        faults.add(given.origin, "'allowed_plugins." + printable(entry.key) + "' is " + given.describe() +
                                     ", expected a SHA-256: 64 digits 0 to 9 and a to f, or a list of them (see "
                                     "`patchbay plugin list --pins`)");
    };
    if (entry.value.kind != NodeKind::kList) take(entry.value);
    for (const Node& item : entry.value.items) take(item);
    return out;
}

Node shown(const EngineConfig& c) {
    if (!c.allowed_plugins) return {};
    Node out = Node::map();
    for (const auto& [library, digests] : c.allowed_plugins->digests) {
        Node list = Node::list();
        for (const std::string& digest : digests) list.items.push_back(Node::string(digest));
        out.entries.push_back({library, {}, std::move(list)});
    }
    return out;
}

}  // namespace

void add_allowed_plugins(Table<EngineConfig>& table) {
    table.custom({.name = "allowed_plugins",
                  .type = ValueType::kOther,
                  .description = "libraries that may be loaded: file name → the SHA-256 of its bytes, or a list of "
                                 "several; left out: any",
                  .optional = true,
                  .json_schema = R"({"type": "object", "additionalProperties": {"type": ["string", "array"]}})"},
                 [](const Node* given, EngineConfig& out, Faults& faults) {
                     if (!given || given->kind == NodeKind::kNull) return shown(out);
                     if (!is_section(*given, "'allowed_plugins'", faults)) return Node();
                     host::AllowedPlugins allowed;
                     for (const Entry& e : given->entries) allowed.digests[e.key] = read_digests(e, faults);
                     out.allowed_plugins = std::move(allowed);
                     return *given;
                 });
}

}  // namespace patchbay::config
