#include "scenario/values.hpp"

#include "base/numbers.hpp"

namespace patchbay::scenario {

std::string map_of(const std::string& value) { return R"({"type": "object", "additionalProperties": )" + value + "}"; }

namespace {

// A number or a range of them, as read_number() takes it.
constexpr const char* kNumberSchema = R"({"anyOf": [{"type": "integer", "minimum": 0},
    {"type": "string", "pattern": "^((>=|<=) ?[0-9]+|[0-9]+\\.\\.[0-9]+)$"}]})";

constexpr const char* kBlocksSchema = R"({"type": "array", "items": {"type": "string", "pattern": "/[0-9]+$"}})";

constexpr engine::FinishReason kEndings[] = {engine::FinishReason::kStop, engine::FinishReason::kLength,
                                             engine::FinishReason::kAbort, engine::FinishReason::kError};

}  // namespace

std::string schema_of(const Value& shape) {
    struct Of {
        std::string operator()(const Number&) const { return kNumberSchema; }
        std::string operator()(const std::string&) const { return R"({"type": "string"})"; }
        std::string operator()(const Names&) const { return kIdsSchema; }
        std::string operator()(const Counts&) const { return map_of(kNumberSchema); }
        std::string operator()(const Words&) const { return map_of(R"({"type": ["string", "number", "boolean"]})"); }
        std::string operator()(const Endings&) const {
            return map_of(R"({"enum": ["stop", "length", "abort", "error"]})");
        }
        std::string operator()(const Totals& totals) const {
            std::string keys;
            for (const auto& [key, ignored] : totals)
                keys += (keys.empty() ? "\"" : ", \"") + std::string(subject_info(key).name) + "\": " + kNumberSchema;
            return R"({"type": "object", "properties": {)" + keys + R"(}, "additionalProperties": false})";
        }
        std::string operator()(const BlockList&) const { return kBlocksSchema; }
        std::string operator()(const BlockCounts&) const { return map_of(kNumberSchema); }
        std::string operator()(const KvEvents&) const {
            const std::string amount = R"({"anyOf": [)" + std::string(kNumberSchema) + ", " + kBlocksSchema + "]}";
            return R"({"type": "object", "properties": {"stored": )" + amount + R"(, "removed": )" + amount +
                   R"(, "cleared": )" + kNumberSchema + R"(}, "additionalProperties": false})";
        }
        std::string operator()(const Texts&) const { return map_of(kTokensSchema); }
    };
    return std::visit(Of{}, shape);
}

KeyInfo other(std::string name, std::string schema, std::string description) {
    return {.name = std::move(name), .type = ValueType::kOther, .description = std::move(description),
            .json_schema = std::move(schema)};
}

void wrong(const Node& node, const std::string& name, const std::string& expected, Faults& faults) {
    faults.add(node.origin, "'" + name + "' is " + node.describe() + ", expected " + expected);
}

Tokens read_tokens(const Node& node, const std::string& name, Faults& faults) {
    Tokens out;
    if (node.kind != NodeKind::kList) wrong(node, name, "a list of token ids", faults);
    const KeyInfo info{.name = name, .type = ValueType::kInt, .min = -2147483648.0, .max = 2147483647.0};
    for (const Node& item : node.items)
        if (const auto token = config::read_int(item, info, faults)) out.push_back(static_cast<TokenId>(*token));
    return out;
}

Names read_names(const Node& node, const std::string& name, Faults& faults) {
    Names out;
    if (node.kind != NodeKind::kList) wrong(node, name, "a list of requests", faults);
    for (const Node& item : node.items) {
        if (item.kind != NodeKind::kScalar) wrong(item, name, "the id of a request", faults);
        else out.push_back(item.text);
    }
    return out;
}

namespace {

std::optional<uint64_t> whole_number(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const auto value = parse_number<uint64_t>(text);
    return value && *value <= Number::kMax ? value : std::nullopt;
}

std::optional<Number> range_of(std::string_view text) {
    if (text.starts_with(">="))
        if (const auto low = whole_number(text.substr(2))) return Number(*low, Number::kMax);
    if (text.starts_with("<="))
        if (const auto high = whole_number(text.substr(2))) return Number(0, *high);
    const size_t dots = text.find("..");
    if (dots == std::string_view::npos) return std::nullopt;
    const auto low = whole_number(text.substr(0, dots)), high = whole_number(text.substr(dots + 2));
    if (!low || !high || *low > *high) return std::nullopt;
    return Number(*low, *high);
}

// What may have been meant by another spelling.
std::string guess(std::string_view text) {
    const auto meant = [](const std::string& number) { return " (did you mean " + number + "?)"; };
    const size_t dots = text.find("..");
    const auto low = whole_number(text.substr(0, dots));
    const auto high = dots == std::string_view::npos ? std::nullopt : whole_number(text.substr(dots + 2));
    if (low && high) return meant(std::to_string(*high) + ".." + std::to_string(*low));
    if (low && text.ends_with("..")) return meant("\">= " + std::to_string(*low) + "\"");
    const size_t digits = text.find_first_of("0123456789");
    const auto number = digits == std::string_view::npos ? std::nullopt : whole_number(text.substr(digits));
    if (!number) return "";
    if (text.starts_with(">")) return meant("\">= " + std::to_string(*number + 1) + "\"");
    if (text.starts_with("<") && *number > 0) return meant("\"<= " + std::to_string(*number - 1) + "\"");
    return text.starts_with("=") ? meant(std::to_string(*number)) : "";
}

template <class Map, class Read>
Map read_map(const Node& node, const std::string& name, Faults& faults, Read&& read) {
    Map out;
    if (node.kind != NodeKind::kMap) wrong(node, name, "a map of requests", faults);
    for (const Entry& entry : node.entries) out[entry.key] = read(entry.value, name + "." + entry.key, faults);
    return out;
}

engine::FinishReason read_ending(const Node& node, const std::string& name, Faults& faults) {
    KeyInfo info{.name = name, .type = ValueType::kEnum};
    for (const engine::FinishReason reason : kEndings) info.choices.emplace_back(engine::name_of(reason));
    const auto index = config::read_word(node, info, faults);
    return index ? kEndings[*index] : engine::FinishReason::kNone;
}

std::string read_word(const Node& node, const std::string& name, Faults& faults) {
    if (node.kind != NodeKind::kScalar) wrong(node, name, "a string", faults);
    return node.text;
}

KvEvents read_events(const Node& node, const std::string& name, Faults& faults) {
    KvEvents out;
    if (!config::is_section(node, "'" + name + "'", faults)) return out;
    const std::vector<KeyInfo> known = {{.name = "stored"}, {.name = "removed"}, {.name = "cleared"}};
    config::check_unknown_keys(node, known, {}, faults);
    for (const Entry& entry : node.entries) {
        const std::string key = name + "." + entry.key;
        if (entry.value.kind == NodeKind::kList && entry.key != "cleared")
            out.by_kind[entry.key] = read_names(entry.value, key, faults);
        else out.by_kind[entry.key] = read_number(entry.value, key, faults);
    }
    return out;
}

Totals read_totals(const Node& node, const SubjectInfo& subject, Faults& faults) {
    Totals out;
    if (!config::is_section(node, "'" + std::string(subject.name) + "'", faults)) return out;
    std::vector<KeyInfo> known;
    for (const auto& [key, ignored] : std::get<Totals>(subject.shape)) {
        known.push_back({.name = subject_info(key).name});
        if (const Node* given = node.find(known.back().name))
            out[key] = read_number(*given, std::string(subject.name) + "." + known.back().name, faults);
    }
    config::check_unknown_keys(node, known, {}, faults);
    return out;
}

}  // namespace

Number read_number(const Node& node, const std::string& name, Faults& faults) {
    if (node.kind == NodeKind::kScalar) {
        if (const auto exact = node.quoted ? std::nullopt : whole_number(node.text)) return *exact;
        if (const auto range = range_of(node.text)) return *range;
    }
    wrong(node, name, "a whole number, \">= 3\", \"<= 9\" or 2..5" + guess(node.text), faults);
    return {};
}

Texts read_texts(const Node& node, const std::string& name, Faults& faults) {
    return read_map<Texts>(node, name, faults, read_tokens);
}

Trees read_trees(const Node& node, const std::string& name, Faults& faults) {
    const auto paths = [](const Node& of, const std::string& key, Faults& all) {
        std::vector<Tokens> out;
        if (of.kind != NodeKind::kList || of.items.empty() || of.items[0].kind != NodeKind::kList)
            return std::vector<Tokens>{read_tokens(of, key, all)};
        for (const Node& path : of.items) out.push_back(read_tokens(path, key, all));
        return out;
    };
    return read_map<Trees>(node, name, faults, paths);
}

Value read_value(const Node& node, const SubjectInfo& subject, Faults& faults) {
    struct Read {
        const Node& node;
        const SubjectInfo& subject;
        const std::string name;
        Faults& faults;
        Value operator()(const Number&) const { return read_number(node, name, faults); }
        Value operator()(const std::string&) const {
            if (node.kind != NodeKind::kScalar) wrong(node, name, "a name", faults);
            return node.text;
        }
        Value operator()(const Names&) const { return read_names(node, name, faults); }
        Value operator()(const Counts&) const { return read_map<Counts>(node, name, faults, read_number); }
        Value operator()(const Words&) const { return read_map<Words>(node, name, faults, read_word); }
        Value operator()(const Endings&) const { return read_map<Endings>(node, name, faults, read_ending); }
        Value operator()(const BlockList&) const {
            BlockList out{read_names(node, name, faults)};
            if (node.kind == NodeKind::kList && node.items.empty())
                faults.add(node.origin, "'" + name + "' names no block (to expect none: cached_pages: 0)");
            return out;
        }
        Value operator()(const BlockCounts&) const {
            return BlockCounts{read_map<Counts>(node, name, faults, read_number)};
        }
        Value operator()(const KvEvents&) const { return read_events(node, name, faults); }
        Value operator()(const Totals&) const { return read_totals(node, subject, faults); }
        Value operator()(const Texts&) const { return read_texts(node, name, faults); }
    };
    return std::visit(Read{node, subject, subject.name, faults}, subject.shape);
}

}  // namespace patchbay::scenario
