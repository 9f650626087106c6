#include "config/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"

namespace patchbay::config {
namespace {

struct Unit {
    std::string_view suffix;
    uint64_t bytes;
};
constexpr std::array<Unit, 9> kUnits{{{"KiB", 1ull << 10},
                                      {"MiB", 1ull << 20},
                                      {"GiB", 1ull << 30},
                                      {"TiB", 1ull << 40},
                                      {"kB", 1'000},
                                      {"KB", 1'000},
                                      {"MB", 1'000'000},
                                      {"GB", 1'000'000'000},
                                      {"TB", 1'000'000'000'000}}};

std::nullopt_t wrong(const Node& node, const KeyInfo& key, Faults& faults, const std::string& hint = "") {
    faults.add(node.origin, "'" + key.name + "' is " + node.describe() + ", expected " + expected_text(key) + hint);
    return std::nullopt;
}

// max: of the type, named where the key has none of its own; may be empty.
std::string range_text(const KeyInfo& key, const std::string& max) {
    const auto shown = [&](double x) {
        if (key.type == ValueType::kBytes) return print_bytes(static_cast<uint64_t>(x));
        constexpr double kWhole = 1e15; // to which they are exact
        return key.type == ValueType::kInt && std::abs(x) <= kWhole ? std::to_string(std::llround(x)) : print_float(x);
    };
    const std::string unit = key.unit.empty() || key.type == ValueType::kBytes ? "" : " " + key.unit;
    if (key.min && key.max) return shown(*key.min) + " to " + shown(*key.max) + unit;
    if (key.min && !max.empty()) return shown(*key.min) + " to " + max + unit;
    if (key.min) return "at least " + shown(*key.min) + unit;
    if (key.max) return "at most " + shown(*key.max) + unit;
    return key.type == ValueType::kInt ? "a whole number of 64 bits" : "a finite number";
}

std::nullopt_t out_of_range(const Node& node, const KeyInfo& key, Faults& faults, const std::string& max = "") {
    faults.add(node.origin, "'" + key.name + "' is " + printable(node.text) + ", expected " + range_text(key, max));
    return std::nullopt;
}

bool in_range(double value, const KeyInfo& key) {
    return std::isfinite(value) && (!key.min || value >= *key.min) && (!key.max || value <= *key.max);
}

bool plain_scalar(const Node& node) { return node.kind == NodeKind::kScalar && !node.quoted; }

bool looks_whole(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <class V>
std::optional<V> read_whole(const Node& node, const KeyInfo& key, Faults& faults) {
    if (!plain_scalar(node) || !looks_whole(node.text)) return wrong(node, key, faults);
    const auto value = parse_number<V>(node.text);
    if (!value && !node.text.starts_with('-'))
        return out_of_range(node, key, faults, std::to_string(std::numeric_limits<V>::max()));
    if (!value || !in_range(static_cast<double>(*value), key)) return out_of_range(node, key, faults);
    return value;
}

}  // namespace

std::optional<bool> read_bool(const Node& node, const KeyInfo& key, Faults& faults) {
    if (plain_scalar(node) && node.text == "true") return true;
    if (plain_scalar(node) && node.text == "false") return false;
    return wrong(node, key, faults);
}

std::optional<int64_t> read_int(const Node& node, const KeyInfo& key, Faults& faults) {
    return read_whole<int64_t>(node, key, faults);
}
std::optional<uint64_t> read_uint(const Node& node, const KeyInfo& key, Faults& faults) {
    return read_whole<uint64_t>(node, key, faults);
}

std::optional<double> read_float(const Node& node, const KeyInfo& key, Faults& faults) {
    std::optional<double> value;
    if (plain_scalar(node)) value = parse_number<double>(node.text);
    if (!value) return wrong(node, key, faults);
    if (!in_range(*value, key)) return out_of_range(node, key, faults);
    return value;
}

std::optional<std::string> read_string(const Node& node, const KeyInfo& key, Faults& faults) {
    if (node.kind != NodeKind::kScalar) return wrong(node, key, faults);
    return node.text;
}

std::optional<size_t> read_word(const Node& node, const KeyInfo& key, Faults& faults) {
    if (node.kind != NodeKind::kScalar) return wrong(node, key, faults);
    const auto at = std::find(key.choices.begin(), key.choices.end(), node.text);
    if (at == key.choices.end()) return wrong(node, key, faults, did_you_mean(node.text, key.choices));
    return static_cast<size_t>(at - key.choices.begin());
}

std::optional<uint64_t> read_bytes(const Node& node, const KeyInfo& key, Faults& faults) {
    if (!plain_scalar(node)) return wrong(node, key, faults);
    std::string_view digits = node.text;
    uint64_t unit = 1;
    for (const Unit& u : kUnits)
        if (digits.ends_with(u.suffix)) {
            digits.remove_suffix(u.suffix.size());
            unit = u.bytes;
            break;
        }
    if (digits.ends_with(' ')) digits.remove_suffix(1);
    if (unit == 1 && !looks_whole(digits)) return wrong(node, key, faults);
    const auto amount = parse_number<double>(digits); // 53 bits: exact up to 8 PiB
    if (!amount) return wrong(node, key, faults);
    const double value = *amount * static_cast<double>(unit);
    if (!(value >= 0 && value < 0x1p53) || !in_range(value, key)) return out_of_range(node, key, faults);
    return static_cast<uint64_t>(value);
}

std::string print_float(double value) { return number_text(value); }

std::string print_bytes(uint64_t bytes) {
    for (size_t i = 4; i-- > 0;)
        if (bytes != 0 && bytes % kUnits[i].bytes == 0)
            return std::to_string(bytes / kUnits[i].bytes) + std::string(kUnits[i].suffix);
    return std::to_string(bytes);
}

std::string expected_text(const KeyInfo& key) {
    switch (key.type) {
        case ValueType::kBool: return "true or false";
        case ValueType::kInt: return "a whole number";
        case ValueType::kFloat: return "a number";
        case ValueType::kString: return "a string";
        case ValueType::kBytes: return "a size such as 256MiB";
        case ValueType::kList: return "a list";
        case ValueType::kMap: return "a map of keys";
        case ValueType::kOther: return "something else";
        case ValueType::kEnum: break;
    }
    return (key.choices.size() == 1 ? "" : "one of ") + joined(key.choices);
}

void check_unknown_keys(const Node& map, std::span<const KeyInfo> keys, std::span<const std::string> left,
                        Faults& faults) {
    std::vector<std::string> known(left.begin(), left.end());
    for (const KeyInfo& key : keys) known.push_back(key.name);
    for (const Entry& entry : map.entries) {
        if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
        std::string guess = did_you_mean(entry.key, known);
        const auto goes_on = [&](const std::string& k) { return k.starts_with(entry.key + "_"); }; // as "ttft_ms"
        if (const auto longer = std::ranges::find_if(known, goes_on);
            guess.empty() && std::ranges::count_if(known, goes_on) == 1)
            guess = " (did you mean '" + *longer + "'?)";
        if (guess.empty())
            for (const KeyInfo& section : keys)
                for (const KeyInfo& child : section.children)
                    if (section.type == ValueType::kMap && child.name == entry.key)
                        guess = " (did you mean '" + section.name + "." + child.name + "'?)";
        faults.add(entry.key_origin, "unknown key '" + printable(entry.key) + "'" + guess);
    }
}

bool is_section(const Node& node, const std::string& what, Faults& faults) {
    if (node.kind == NodeKind::kMap || node.kind == NodeKind::kNull) return true;
    faults.add(node.origin, what + " is " + node.describe() + ", expected a map of keys");
    return false;
}

}  // namespace patchbay::config
