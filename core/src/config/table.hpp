// The keys of a struct, declared once: from the same table come parsing with every fault collected, defaults, what
// `config show` prints, the JSON Schema and the documentation. Used for EngineConfig and for experiment files:
//
//   struct Slo { double ttft_ms = 200; std::optional<uint32_t> most; Mode mode = Mode::kStrict; };
//   Table<Slo> slo_table() {
//       Table<Slo> t;
//       t.key("ttft_ms", &Slo::ttft_ms, {.min = 0, .unit = "ms"}, "time to first token that still meets it")
//           .key("most", &Slo::most, {.min = 1}, "requests counted; all when left out")
//           .word("mode", &Slo::mode, {{"strict", Mode::kStrict}, {"loose", Mode::kLoose}}, "how ties count");
//       return t;
//   }
//   Faults faults; Slo slo;
//   Node effective = slo_table().read(node, slo, faults); // node: null or a map; effective: every key with its origin
//   if (faults.any()) return faults.failure();
//
// A default is what the struct holds before it is read. Several structs nest by section(); what the table
// cannot say (a union, "a number or a map") goes through custom().
#pragma once
#include <concepts>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/document.hpp"

namespace patchbay::config {

enum class ValueType { kBool, kInt, kFloat, kString, kEnum, kBytes, kList, kMap, kOther };

struct KeyInfo {
    std::string name;
    ValueType type = ValueType::kOther;
    std::string description, unit;
    std::optional<std::string> default_value; // as YAML text; of a section: none
    bool required = false, optional = false;
    std::optional<double> min, max;
    std::vector<std::string> choices;    // of kEnum, the spelling that `config show` prints first
    std::vector<KeyInfo> children;       // of kMap: its keys; of kList: the one kind of item
    std::string json_schema;             // of kOther: its JSON Schema, and what errors call it
};

struct Bounds { // inclusive; a type's own limits hold besides
    std::optional<double> min, max;
    std::string unit;
};

template <class E>
struct Word {
    std::string text;
    E value;
};

// One scalar against a KeyInfo: the value, or a fault at the node's origin that names the key.
std::optional<bool> read_bool(const Node&, const KeyInfo&, Faults&);
std::optional<int64_t> read_int(const Node&, const KeyInfo&, Faults&);
std::optional<uint64_t> read_uint(const Node&, const KeyInfo&, Faults&);
std::optional<double> read_float(const Node&, const KeyInfo&, Faults&);
std::optional<std::string> read_string(const Node&, const KeyInfo&, Faults&);
std::optional<size_t> read_word(const Node&, const KeyInfo&, Faults&); // index into choices
std::optional<uint64_t> read_bytes(const Node&, const KeyInfo&, Faults&); // 4096, 512KiB, 256MiB, 1.5GiB, 2TiB, 10MB

std::string print_float(double);         // the shortest text that reads back the same
std::string print_bytes(uint64_t);       // 256MiB where that is exact
std::string expected_text(const KeyInfo&); // "a whole number", "one of auto, dummy", …

// The unknown keys of a map, with a guess each: of `known`, or of a section's keys ("engine.max_num_seqs").
void check_unknown_keys(const Node& map, std::span<const KeyInfo> keys, std::span<const std::string> left, Faults&);
// null or a map: fine; else a fault. what: "'engine'".
bool is_section(const Node&, const std::string& what, Faults&);

template <class T>
class Table {
  public:
    // Reads `given` (null: the key is absent) into the struct and returns the value in effect with its origin.
    using Read = std::function<Node(const Node* given, T& out, Faults&)>;

    // bool, integers, floating point and std::string, or std::optional of them (null or absent: nothing).
    template <class V>
    Table& key(std::string name, V T::*field, Bounds bounds, std::string text);
    template <class V>
    Table& key(std::string name, V T::*field, std::string text) {
        return key(std::move(name), field, Bounds{}, std::move(text));
    }
    // One of some words. Several words may mean one value; the first of them is what is shown.
    template <class E>
    Table& word(std::string name, E T::*field, std::vector<Word<E>> words, std::string text);
    // A size such as 256MiB.
    Table& bytes(std::string name, uint64_t T::*field, Bounds bounds, std::string text);
    // A map with a table of its own.
    template <class U>
    Table& section(std::string name, U T::*field, Table<U> table, std::string text);
    // A list of numbers or texts, in which the bounds hold for each.
    template <class V>
    Table& values(std::string name, std::vector<V> T::*field, Bounds bounds, std::string text);
    // Anything else. info.json_schema describes it to editors.
    Table& custom(KeyInfo info, Read read);

    Table& required();                            // the key declared last must be given
    Table& leave(std::vector<std::string> names); // keys that another reader takes: not unknown, not read

    // given: null or a map. Faults are added and reading goes on; what is wrong keeps its default.
    Node read(const Node& given, T& out, Faults&) const;

    const std::vector<KeyInfo>& keys() const& { return keys_; }
    std::vector<KeyInfo> keys() && { return std::move(keys_); }

  private:
    std::vector<KeyInfo> keys_;
    std::vector<Read> reads_;
    std::vector<std::string> left_;
};

// ---- how it is done -------------------------------------------------------------------------

namespace detail {

template <class V>
struct Plain {
    using type = V;
    static constexpr bool kOptional = false;
};
template <class V>
struct Plain<std::optional<V>> {
    using type = V;
    static constexpr bool kOptional = true;
};

template <class V>
void describe(KeyInfo& info) {
    if constexpr (std::same_as<V, bool>) {
        info.type = ValueType::kBool;
    } else if constexpr (std::integral<V>) {
        info.type = ValueType::kInt;
        // 64 bits have their own ends; as doubles these would be rounded.
        if (!info.min && (sizeof(V) < 8 || std::is_unsigned_v<V>))
            info.min = static_cast<double>(std::numeric_limits<V>::min());
        if (!info.max && sizeof(V) < 8) info.max = static_cast<double>(std::numeric_limits<V>::max());
    } else if constexpr (std::floating_point<V>) {
        info.type = ValueType::kFloat;
    } else {
        static_assert(std::same_as<V, std::string>,
                      "no way to read this type: use word(), section() or custom()");
        info.type = ValueType::kString;
    }
}

template <class V>
std::optional<V> read_value(const Node& node, const KeyInfo& info, Faults& faults) {
    const auto cast = [](const auto& value) { return value ? std::optional<V>(static_cast<V>(*value)) : std::nullopt; };
    if constexpr (std::same_as<V, bool>) return read_bool(node, info, faults);
    else if constexpr (std::unsigned_integral<V>) return cast(read_uint(node, info, faults));
    else if constexpr (std::integral<V>) return cast(read_int(node, info, faults));
    else if constexpr (std::floating_point<V>) return cast(read_float(node, info, faults));
    else return read_string(node, info, faults);
}

template <class V>
Node print_value(const V& value) {
    if constexpr (std::same_as<V, bool>) return Node::scalar(value ? "true" : "false");
    else if constexpr (std::integral<V>) return Node::scalar(std::to_string(value));
    else if constexpr (std::floating_point<V>) return Node::scalar(print_float(static_cast<double>(value)));
    else return Node::string(value);
}

inline Node placed(Node node, const Node* given) {
    if (given) node.origin = given->origin;
    return node;
}

}  // namespace detail

template <class T>
template <class V>
Table<T>& Table<T>::key(std::string name, V T::*field, Bounds bounds, std::string text) {
    using Value = typename detail::Plain<V>::type;
    KeyInfo info{.name = std::move(name),
                 .description = std::move(text),
                 .unit = std::move(bounds.unit),
                 .min = bounds.min,
                 .max = bounds.max};
    detail::describe<Value>(info);
    info.optional = detail::Plain<V>::kOptional;
    if constexpr (!detail::Plain<V>::kOptional) info.default_value = detail::print_value(T{}.*field).text;
    return custom(info, [field, info](const Node* given, T& out, Faults& faults) {
        if (given && !(info.optional && given->kind == NodeKind::kNull))
            if (auto value = detail::read_value<Value>(*given, info, faults)) out.*field = *std::move(value);
        if constexpr (detail::Plain<V>::kOptional)
            return detail::placed(out.*field ? detail::print_value(*(out.*field)) : Node{}, given);
        else return detail::placed(detail::print_value(out.*field), given);
    });
}

template <class T>
template <class E>
Table<T>& Table<T>::word(std::string name, E T::*field, std::vector<Word<E>> words, std::string text) {
    const auto spell = [words](const E& value) {
        for (const Word<E>& w : words)
            if (w.value == value) return w.text;
        return std::string();
    };
    KeyInfo info{.name = std::move(name),
                 .type = ValueType::kEnum,
                 .description = std::move(text),
                 .default_value = spell(T{}.*field)};
    for (const Word<E>& w : words) info.choices.push_back(w.text);
    return custom(info, [field, info, words, spell](const Node* given, T& out, Faults& faults) {
        if (given)
            if (const auto index = read_word(*given, info, faults)) out.*field = words[*index].value;
        return detail::placed(Node::string(spell(out.*field)), given);
    });
}

template <class T>
Table<T>& Table<T>::bytes(std::string name, uint64_t T::*field, Bounds bounds, std::string text) {
    KeyInfo info{.name = std::move(name), .type = ValueType::kBytes, .description = std::move(text), .unit = "bytes",
                 .default_value = print_bytes(T{}.*field), .min = bounds.min, .max = bounds.max};
    return custom(info, [field, info](const Node* given, T& out, Faults& faults) {
        if (given)
            if (const auto value = read_bytes(*given, info, faults)) out.*field = *value;
        return detail::placed(Node::scalar(print_bytes(out.*field)), given);
    });
}

template <class T>
template <class U>
Table<T>& Table<T>::section(std::string name, U T::*field, Table<U> table, std::string text) {
    KeyInfo info{
        .name = std::move(name), .type = ValueType::kMap, .description = std::move(text), .children = table.keys()};
    auto inner = std::make_shared<const Table<U>>(std::move(table));
    return custom(info, [field, info, inner](const Node* given, T& out, Faults& faults) {
        const bool usable = given && is_section(*given, "'" + info.name + "'", faults);
        return inner->read(usable ? *given : Node{}, out.*field, faults);
    });
}

template <class T>
template <class V>
Table<T>& Table<T>::values(std::string name, std::vector<V> T::*field, Bounds bounds, std::string text) {
    KeyInfo item{.name = name, .unit = std::move(bounds.unit), .min = bounds.min, .max = bounds.max};
    detail::describe<V>(item);
    KeyInfo info{.name = std::move(name), .type = ValueType::kList, .description = std::move(text), .children = {item}};
    return custom(info, [field, item](const Node* given, T& out, Faults& faults) {
        Node effective = Node::list(given ? given->origin : Origin{});
        if (given && given->kind != NodeKind::kList) {
            faults.add(given->origin, "'" + item.name + "' is " + given->describe() + ", expected a list");
        } else if (given) {
            (out.*field).clear();
            for (const Node& one : given->items)
                if (auto value = detail::read_value<V>(one, item, faults)) (out.*field).push_back(*std::move(value));
        }
        for (size_t i = 0; i < (out.*field).size(); ++i)
            effective.items.push_back(detail::placed(detail::print_value((out.*field)[i]),
                                                     given && i < given->items.size() ? &given->items[i] : nullptr));
        return effective;
    });
}

template <class T>
Table<T>& Table<T>::custom(KeyInfo info, Read read) {
    keys_.push_back(std::move(info));
    reads_.push_back(std::move(read));
    return *this;
}

template <class T>
Table<T>& Table<T>::required() {
    keys_.back().required = true;
    keys_.back().default_value.reset();
    return *this;
}

template <class T>
Table<T>& Table<T>::leave(std::vector<std::string> names) {
    left_.insert(left_.end(), names.begin(), names.end());
    return *this;
}

template <class T>
Node Table<T>::read(const Node& given, T& out, Faults& faults) const {
    check_unknown_keys(given, keys_, left_, faults);
    Node effective = Node::map(given.origin);
    for (size_t i = 0; i < keys_.size(); ++i) {
        const Node* value = given.find(keys_[i].name);
        if (!value && keys_[i].required)
            faults.add(given.origin, "'" + keys_[i].name + "' is missing: " + keys_[i].description);
        effective.set(keys_[i].name, reads_[i](value, out, faults));
    }
    return effective;
}

}  // namespace patchbay::config
