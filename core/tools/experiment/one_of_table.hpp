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

inline constexpr double kMaxRequests = 4e6, kMaxTokens = 1 << 26;

template <class V>
struct Kind {
    std::string name;
    std::function<V(const config::Node&, config::Faults&)> read;
};

template <class V>
std::optional<V> choose(const config::Node& given, const std::string& what, const std::vector<Kind<V>>& kinds,
                        config::Faults& faults) {
    std::vector<std::string> names;
    for (const Kind<V>& k : kinds) names.push_back(k.name);
    const auto kind_named = [&](const std::string& name, const config::Origin& at) -> const Kind<V>* {
        for (const Kind<V>& k : kinds)
            if (k.name == name) return &k;
        faults.add(at, "unknown '" + config::printable(name) + "' in " + what + did_you_mean(name, names) +
                           ", expected one of " + joined(names));
        return nullptr;
    };
    if (given.kind == config::NodeKind::kScalar) {
        const Kind<V>* kind = kind_named(given.text, given.origin);
        return kind ? std::optional<V>(kind->read(config::Node::map(given.origin), faults)) : std::nullopt;
    }
    if (given.kind != config::NodeKind::kMap || given.entries.size() != 1) {
        faults.add(given.origin, what + " is " + given.describe() + ", expected exactly one of " + joined(names));
        return std::nullopt;
    }
    const config::Entry& only = given.entries.front();
    const Kind<V>* kind = kind_named(only.key, only.key_origin);
    return kind ? std::optional<V>(kind->read(only.value, faults)) : std::nullopt;
}

// A kind whose settings are a map with a table. `check` may add faults about how they fit together.
template <class V, class S>
Kind<V> table_kind(std::string name, config::Table<S> table,
                   std::function<void(const config::Node&, const S&, config::Faults&)> check = {}) {
    auto shared = std::make_shared<const config::Table<S>>(std::move(table));
    return {name, [name, shared, check](const config::Node& given, config::Faults& faults) -> V {
                S settings;
                if (!config::is_section(given, "'" + name + "'", faults)) return settings;
                shared->read(given, settings, faults);
                if (check) check(given, settings, faults);
                return settings;
            }};
}

// A key that read(given, out, faults) takes from the file.
template <class T, class Read>
config::Table<T>& read_key(config::Table<T>& table, config::KeyInfo info, Read read) {
    return table.custom(std::move(info), [read](const config::Node* given, T& out, config::Faults& faults) {
        if (given) read(*given, out, faults);
        return given ? *given : config::Node{};
    });
}

// A key whose value read(given, faults) is; nothing where it found a fault.
template <class T, class V, class Read>
config::Table<T>& value_key(config::Table<T>& table, config::KeyInfo info, V T::*field, Read read) {
    return read_key(table, std::move(info), [field, read](const config::Node& given, T& out, config::Faults& faults) {
        if (auto value = read(given, faults)) out.*field = *std::move(value);
    });
}

// The only key of a table, whose value stands where its section would.
template <class T>
void read_alone(const config::Table<T>& table, const config::Node& given, T& out, config::Faults& faults) {
    config::Node section = config::Node::map(given.origin);
    section.set(table.keys().front().name, given);
    table.read(section, out, faults);
}

}  // namespace patchbay::experiment
