#include "config/reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/suggest.hpp"

namespace patchbay::config {
namespace {

template <class T>
std::string plain(T x) { // 8 rather than 8.000000
    char digits[64];
    return {digits, std::to_chars(digits, digits + sizeof digits, x).ptr};
}

std::string plain(bool x) { return x ? "true" : "false"; }

template <class T>
std::optional<T> parse(std::string_view text) {
    T x{};
    const char* last = text.data() + text.size();
    const auto [end, ec] = std::from_chars(text.data(), last, x);
    if (ec != std::errc{} || end != last) return std::nullopt;
    return x;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
    double x = 0;
    const char* last = text.data() + text.size();
    const auto [end, ec] = std::from_chars(text.data(), last, x);
    if (ec != std::errc{} || !(x >= 0)) return std::nullopt;
    std::string_view unit(end, static_cast<size_t>(last - end));
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    static constexpr std::pair<std::string_view, double> kUnits[] = {
        {"", 1}, {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    for (const auto& [name, factor] : kUnits)
        if (unit == name && x * factor < 0x1p62) return static_cast<uint64_t>(x * factor);
    return std::nullopt;
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
    return out;
}

const char* kind_word(const Node& n) {
    switch (n.kind) {
        case Node::Kind::kMap: return "a map";
        case Node::Kind::kList: return "a list";
        default: return "nothing";
    }
}

}  // namespace

void Reading::fault(const Origin& origin, std::string text) { faults_.push_back({origin, std::move(text)}); }

std::string Reading::faults() const {
    std::vector<Fault> sorted = faults_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Fault& a, const Fault& b) { return a.origin < b.origin; });
    std::string out;
    for (const Fault& f : sorted) out += (out.empty() ? "" : "\n") + (f.origin.file.empty() ? f.text : f.origin.text() + ": " + f.text);
    return out;
}

std::string resolve_path(const Node& node) {
    namespace fs = std::filesystem;
    const fs::path path = node.scalar;
    if (path.empty() || path.is_absolute() || node.origin.line == 0) return node.scalar;
    const fs::path beside = (fs::path(node.origin.file).parent_path() / path).lexically_normal();
    std::error_code error;
    return fs::exists(beside, error) ? beside.string() : node.scalar;
}

Reader::Reader(const Node& map, Reading& all, std::string path) : map_(map), all_(&all), path_(std::move(path)) {
    if (map_.kind == Node::Kind::kMap || map_.kind == Node::Kind::kNull) return;
    all_->fault(map_.origin, "'" + path_ + "' is " + (map_.kind == Node::Kind::kScalar ? "'" + map_.scalar + "'" : kind_word(map_)) + ", expected a map of keys");
    map_.kind = Node::Kind::kNull;
}

const Node* Reader::node(const std::string& key) const {
    const Node* n = map_.find(key);
    return n && n->kind == Node::Kind::kNull ? nullptr : n;
}

void Reader::fault(const std::string& key, const std::string& text) const {
    const Node* n = map_.find(key);
    all_->fault(n ? n->origin : map_.origin, text);
}

// Declares the key and notes the effective value; null if the default stays.
const Node* Reader::scalar(const std::string& key, Type type, std::string fallback, const Spec& spec) {
    known_.push_back(key);
    all_->declared.push_back({full(key), type, fallback, spec});
    const Node* n = node(key);
    if (n && n->kind != Node::Kind::kScalar) {
        fault(key, "'" + key + "' is " + kind_word(*n) + ", expected a single value");
        n = nullptr;
    }
    all_->effective.push_back({full(key), n ? n->scalar : std::move(fallback), type, n ? n->origin.text() : "default", {}});
    return n;
}

template <class T>
void Reader::number(const std::string& key, T& target, Type type, const Spec& spec) {
    const Node* n = scalar(key, type, plain(target), spec);
    if (!n) return;
    const auto wide = parse<std::conditional_t<std::is_floating_point_v<T>, double, int64_t>>(n->scalar);
    if (!wide) return fault(key, "'" + key + "' is '" + n->scalar + "', expected " + (type == Type::kInt ? "a whole number" : "a number"));
    const double x = static_cast<double>(*wide);
    const double low = spec.min.value_or(std::is_floating_point_v<T> ? -std::numeric_limits<double>::infinity() : static_cast<double>(std::numeric_limits<T>::min()));
    const double high = spec.max.value_or(std::is_floating_point_v<T> ? std::numeric_limits<double>::infinity() : static_cast<double>(std::numeric_limits<T>::max()));
    if (!(x >= low && x <= high) || !std::isfinite(x))
        return fault(key, "'" + key + "' is " + n->scalar + ", expected " + plain(low) + " to " + plain(high) + (spec.unit.empty() ? "" : " " + spec.unit));
    target = static_cast<T>(*wide);
}

void Reader::value(const std::string& key, bool& target, const Spec& spec) {
    const Node* n = scalar(key, Type::kBool, plain(target), spec);
    if (!n) return;
    if (n->scalar != "true" && n->scalar != "false") return fault(key, "'" + key + "' is '" + n->scalar + "', expected true or false");
    target = n->scalar == "true";
}

void Reader::value(const std::string& key, uint32_t& target, const Spec& spec) { number(key, target, Type::kInt, spec); }
void Reader::value(const std::string& key, uint64_t& target, const Spec& spec) { number(key, target, Type::kInt, spec); }
void Reader::value(const std::string& key, int32_t& target, const Spec& spec) { number(key, target, Type::kInt, spec); }
void Reader::value(const std::string& key, double& target, const Spec& spec) { number(key, target, Type::kFloat, spec); }
void Reader::value(const std::string& key, float& target, const Spec& spec) { number(key, target, Type::kFloat, spec); }

void Reader::value(const std::string& key, std::string& target, const Spec& spec) {
    if (const Node* n = scalar(key, Type::kString, target, spec)) target = n->scalar;
}

void Reader::choice(const std::string& key, std::string& target, const Spec& spec) {
    const Node* n = scalar(key, Type::kEnum, target, spec);
    if (!n) return;
    if (std::find(spec.choices.begin(), spec.choices.end(), n->scalar) == spec.choices.end())
        return fault(key, "'" + key + "' is '" + n->scalar + "', expected one of " + joined(spec.choices) + did_you_mean(n->scalar, spec.choices));
    target = n->scalar;
}

void Reader::bytes(const std::string& key, uint64_t& target, const Spec& spec) {
    const Node* n = scalar(key, Type::kBytes, plain(target), spec);
    if (!n) return;
    const auto x = parse_bytes(n->scalar);
    if (!x) return fault(key, "'" + key + "' is '" + n->scalar + "', expected bytes such as 1048576, 256MiB or 1.5GiB");
    target = *x;
}

void Reader::path(const std::string& key, std::string& target, const Spec& spec) {
    const Node* n = scalar(key, Type::kPath, target, spec);
    if (!n) return;
    target = resolve_path(*n);
    all_->effective.back().value = target;
}

void Reader::list(const std::string& key, std::vector<std::string>& target, const Spec& spec) {
    known_.push_back(key);
    all_->declared.push_back({full(key), Type::kList, "", spec});
    const Node* n = node(key);
    if (n && n->kind == Node::Kind::kScalar) target = {n->scalar};
    if (n && n->kind == Node::Kind::kList) {
        target.clear();
        for (const Node& item : n->list) {
            if (item.kind == Node::Kind::kScalar) target.push_back(item.scalar);
            else all_->fault(item.origin, "'" + key + "' takes a list of single values");
        }
    }
    if (n && n->kind == Node::Kind::kMap) fault(key, "'" + key + "' is a map, expected a list");
    all_->effective.push_back({full(key), "", Type::kList, n ? n->origin.text() : "default", target});
}

Reader Reader::section(const std::string& key, const std::string& meaning) {
    known_.push_back(key);
    all_->declared.push_back({full(key), Type::kMap, "", {.meaning = meaning}});
    const Node* n = node(key);
    Node empty;
    empty.origin = map_.origin;
    return Reader(n ? *n : empty, *all_, full(key));
}

const Node* Reader::raw(const std::string& key, const Spec& spec, Type type) {
    known_.push_back(key);
    all_->declared.push_back({full(key), type, "", spec});
    return node(key);
}

void Reader::finish() {
    for (const Node::Entry& e : map_.map)
        if (std::find(known_.begin(), known_.end(), e.key) == known_.end())
            all_->fault(e.origin, "unknown key '" + e.key + "'" + (path_.empty() ? "" : " in '" + path_ + "'") + did_you_mean(e.key, known_));
}

}  // namespace patchbay::config
