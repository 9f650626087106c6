// Keys whose value is one of several kinds, each with settings of its own: {kind: {…}}, or just the kind's name. For
// the tables of an experiment file.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "config/table.hpp"

namespace patchbay::experiment {

using config::Bounds;
using config::Entry;
using config::Faults;
using config::KeyInfo;
using config::Node;
using config::NodeKind;
using config::Table;

inline constexpr double kMaxRequests = 4e6, kMaxTokens = 1 << 26;

template <class V>
struct Kind {
    std::string name;
    std::function<V(const Node&, Faults&)> read;
};

template <class V>
std::optional<V> choose(const Node& given, const std::string& what, const std::vector<Kind<V>>& kinds,
                        Faults& faults) {
    std::vector<std::string> names;
    for (const Kind<V>& k : kinds) names.push_back(k.name);
    const auto kind_named = [&](const std::string& name, const config::Origin& at) -> const Kind<V>* {
        for (const Kind<V>& k : kinds)
            if (k.name == name) return &k;
        faults.add(at, "unknown '" + config::printable(name) + "' in " + what + did_you_mean(name, names) +
                           ", expected one of " + joined(names));
        return nullptr;
    };
    if (given.kind == NodeKind::kScalar) {
        const Kind<V>* kind = kind_named(given.text, given.origin);
        return kind ? std::optional<V>(kind->read(Node::map(given.origin), faults)) : std::nullopt;
    }
    if (given.kind != NodeKind::kMap || given.entries.size() != 1) {
        faults.add(given.origin, what + " is " + given.describe() + ", expected exactly one of " + joined(names));
        return std::nullopt;
    }
    const Entry& only = given.entries.front();
    const Kind<V>* kind = kind_named(only.key, only.key_origin);
    return kind ? std::optional<V>(kind->read(only.value, faults)) : std::nullopt;
}

// A kind whose settings are a map with a table. `check` may add faults about how they fit together.
template <class V, class S>
Kind<V> table_kind(std::string name, Table<S> table,
                   std::function<void(const Node&, const S&, Faults&)> check = {}) {
    auto shared = std::make_shared<const Table<S>>(std::move(table));
    return {name, [name, shared, check](const Node& given, Faults& faults) -> V {
                S settings;
                if (!config::is_section(given, "'" + name + "'", faults)) return settings;
                shared->read(given, settings, faults);
                if (check) check(given, settings, faults);
                return settings;
            }};
}

// A key that read(given, out, faults) takes from the file.
template <class T, class Read>
Table<T>& read_key(Table<T>& table, KeyInfo info, Read read) {
    return table.custom(std::move(info), [read](const Node* given, T& out, Faults& faults) {
        if (given) read(*given, out, faults);
        return given ? *given : Node{};
    });
}

// A key whose value read(given, faults) is; nothing where it found a fault.
template <class T, class V, class Read>
Table<T>& value_key(Table<T>& table, KeyInfo info, V T::*field, Read read) {
    return read_key(table, std::move(info), [field, read](const Node& given, T& out, Faults& faults) {
        if (auto value = read(given, faults)) out.*field = *std::move(value);
    });
}

// The only key of a table, whose value stands where its section would.
template <class T>
void read_alone(const Table<T>& table, const Node& given, T& out, Faults& faults) {
    Node section = Node::map(given.origin);
    section.set(table.keys().front().name, given);
    table.read(section, out, faults);
}

}  // namespace patchbay::experiment
