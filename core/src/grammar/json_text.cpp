#include "grammar/json_text.hpp"

namespace patchbay::grammar {
namespace {

constexpr const char* kCharacter = // of a string, any spelling; surrogates in pairs only
    R"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u([0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}))"
    R"(|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})";

CodePoints escaped() { return CodePoints::of({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}); }

// One character of the set as it stands in a string.
ExprId spell(Rules& rules, const CodePoints& set) {
    std::vector<ExprId> ways{rules.chars(set.without(escaped()))};
    const CodePoints special = set.common(escaped());
    for (const auto [low, high] : special.ranges())
        for (uint32_t c = low; c <= high; ++c) {
            const std::string text = JsonText::spelled(Json(utf8(c)));
            ways.push_back(rules.bytes(text.substr(1, text.size() - 2)));
        }
    return rules.choice(std::move(ways));
}

CodePoints ecma_space() {
    return CodePoints::of({{'\t', '\r'},
                           {' ', ' '},
                           {0xA0, 0xA0},
                           {0x1680, 0x1680},
                           {0x2000, 0x200A},
                           {0x2028, 0x2029},
                           {0x202F, 0x202F},
                           {0x205F, 0x205F},
                           {0x3000, 0x3000},
                           {0xFEFF, 0xFEFF}});
}

}  // namespace

JsonText::JsonText(Rules& rules, Whitespace w) : rules_(rules), whitespace_(w) {}

std::string JsonText::spelled(const Json& scalar) { return scalar.dump(-1, ' ', false); }

ExprId JsonText::regex(const std::string& pattern) {
    Work work(1000 * pattern.size()); // enough for its few classes
    const auto out = parse_regex(rules_, pattern, plain_regex(), work);
    return out ? *out : rules_.nothing();
}

RegexDialect JsonText::pattern_dialect() const {
    const CodePoints line_ends = CodePoints::of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
    return {line_ends.inverted(), ecma_space(), RegexDialect::Match::kAnywhere, spell};
}

RegexDialect JsonText::format_dialect() const {
    RegexDialect out = pattern_dialect();
    out.match = RegexDialect::Match::kWhole;
    return out;
}

ExprId JsonText::space() {
    if (whitespace_ == Whitespace::kNone) return rules_.empty();
    if (!space_) {
        space_ = rules_.declare("space");
        rules_.define(*space_, regex(R"( ?|\n[ \t]{0,40})"));
    }
    return rules_.rule(*space_);
}

ExprId JsonText::separator() { return rules_.sequence({rules_.bytes(","), space()}); }

ExprId JsonText::member(ExprId name, ExprId value) {
    const ExprId gap = whitespace_ == Whitespace::kNone ? rules_.empty() : rules_.optional(rules_.bytes(" "));
    return rules_.sequence({name, rules_.bytes(":"), gap, value});
}

ExprId JsonText::object_of(ExprId members) {
    return rules_.sequence({rules_.bytes("{"), space(), members, space(), rules_.bytes("}")});
}

ExprId JsonText::array_of(ExprId items) {
    return rules_.sequence({rules_.bytes("["), space(), items, space(), rules_.bytes("]")});
}

ExprId JsonText::string(uint32_t min, uint32_t max) {
    if (min == 0 && max == kUnbounded) { // one rule, whose masks all of them share
        if (!string_) {
            string_ = rules_.declare("string");
            rules_.define(*string_, regex(R"(")"
                                          "(" +
                                          std::string(kCharacter) +
                                          ")*"
                                          R"(")"));
        }
        return rules_.rule(*string_);
    }
    return quoted(rules_.counted(regex(kCharacter), min, max));
}

ExprId JsonText::quoted(ExprId content) { return rules_.sequence({rules_.bytes("\""), content, rules_.bytes("\"")}); }

ExprId JsonText::content(uint32_t min, uint32_t max) {
    return rules_.repeat(spell(rules_, CodePoints::all()), min, max);
}

ExprId JsonText::integer() { return regex("0|-?[1-9][0-9]*"); }
ExprId JsonText::number() { return regex(R"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)"); }
ExprId JsonText::boolean() { return regex("true|false"); }

ExprId JsonText::literal(const Json& value) {
    if (!value.is_structured() || value.empty()) return rules_.bytes(spelled(value));
    std::vector<ExprId> parts;
    for (const auto& [name, part] : value.items()) {
        if (!parts.empty()) parts.push_back(separator());
        const ExprId inner = literal(part);
        parts.push_back(value.is_object() ? member(rules_.bytes(spelled(Json(name))), inner) : inner);
    }
    const ExprId all = rules_.sequence(std::move(parts));
    return value.is_object() ? object_of(all) : array_of(all);
}

ExprId JsonText::value() {
    if (!value_) {
        value_ = rules_.declare("value");
        const ExprId self = rules_.rule(*value_);
        const auto some = [&](ExprId one) {
            return rules_.sequence({one, rules_.repeat(rules_.sequence({separator(), one}), 0, kUnbounded)});
        };
        rules_.define(*value_, rules_.choice({string(0, kUnbounded), number(), boolean(), rules_.bytes("null"),
                                              rules_.bytes("{}"), rules_.bytes("[]"), array_of(some(self)),
                                              object_of(some(member(string(0, kUnbounded), self)))}));
    }
    return rules_.rule(*value_);
}

}  // namespace patchbay::grammar
