#include "grammar/lark.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "grammar/ebnf.hpp"
#include "grammar/lark_text.hpp"
#include "grammar/regex.hpp"
#include "grammar/unicode_classes.hpp"

namespace patchbay::grammar {
namespace {

// Lark's own grammar `common`, as far as it says what texts match.
constexpr std::pair<const char*, const char*> kCommon[] = {
    {"DIGIT", R"("0".."9")"},
    {"HEXDIGIT", R"("a".."f" | "A".."F" | DIGIT)"},
    {"INT", "DIGIT+"},
    {"SIGNED_INT", R"(["+"|"-"] INT)"},
    {"DECIMAL", R"(INT "." INT? | "." INT)"},
    {"_EXP", R"(("e"|"E") SIGNED_INT)"},
    {"FLOAT", "INT _EXP | DECIMAL _EXP?"},
    {"SIGNED_FLOAT", R"(["+"|"-"] FLOAT)"},
    {"NUMBER", "FLOAT | INT"},
    {"SIGNED_NUMBER", R"(["+"|"-"] NUMBER)"},
    {"ESCAPED_STRING", R"(/"([^"\\\n]|\\.)*"/)"},
    {"LCASE_LETTER", R"("a".."z")"},
    {"UCASE_LETTER", R"("A".."Z")"},
    {"LETTER", "UCASE_LETTER | LCASE_LETTER"},
    {"WORD", "LETTER+"},
    {"CNAME", R"(("_"|LETTER) ("_"|LETTER|DIGIT)*)"},
    {"WS_INLINE", R"((" "|/\t/)+)"},
    {"WS", R"(/[ \t\f\r\n]/+)"},
    {"CR", R"(/\r/)"},
    {"LF", R"(/\n/)"},
    {"NEWLINE", "(CR? LF)+"},
    {"SH_COMMENT", R"(/#[^\n]*/)"},
    {"CPP_COMMENT", R"(/\/\/[^\n]*/)"},
    {"C_COMMENT", R"(/\/\*([^*]|\*+[^*\/])*\*+\//)"},
    {"SQL_COMMENT", R"(/--[^\n]*/)"},
};

bool is_terminal(const std::string& name) { // _EXP is one, _expression is a rule
    const size_t at = name.find_first_not_of('_');
    return at != name.npos && name[at] >= 'A' && name[at] <= 'Z';
}

class LarkParser {
  public:
    LarkParser(Rules& rules, LarkText text, bool ignores, Work& work)
        : rules_(rules), text_(std::move(text)), work_(work) {
        if (ignores) ignored_ = rules_.declare("ignored");
    }

    Result<RuleId> parse() {
        for (text_.skip_lines(); !text_.at_end(); text_.skip_lines()) {
            if (text_.peek() == '%') {
                PB_CHECK(directive());
            } else {
                PB_CHECK(definition());
            }
            if (!rules_.fault().empty()) return invalid("grammar: " + rules_.fault());
        }
        if (ignored_) {
            std::vector<ExprId> parts;
            for (const ExprId e : ignored_parts_) parts.push_back(e);
            rules_.define(*ignored_, rules_.repeat(rules_.choice(std::move(parts)), 0, kUnbounded));
        }
        for (const auto& [name, rule] : names_)
            if (rules_.body(rule) == Rules::kUndefined)
                return invalid("grammar: '" + name + "' is used and neither defined nor imported");
        const auto start = names_.find("start");
        if (start == names_.end()) return invalid("grammar: no rule is named 'start'");
        if (!ignored_) return start->second;
        const RuleId root = rules_.declare("root");
        rules_.define(root, rules_.sequence({rules_.rule(start->second), rules_.rule(*ignored_)}));
        return root;
    }

  private:
    using Sequence = std::vector<ExprId>;

    RuleId named(const std::string& name) {
        const auto at = names_.find(name);
        return at != names_.end() ? at->second : names_[name] = rules_.declare(name);
    }

    Result<> definition() {
        while (text_.take(U'?') || text_.take(U'!')) { // they shape the tree
        }
        const std::string name = text_.name();
        if (name.empty()) return text_.refuse("expected a rule, 'name: …',");
        if (text_.peek() == '{') return text_.refuse(unsupported("the template '" + name + "{…}' is not supported"));
        if (text_.peek() == '[') return text_.refuse(unsupported("attributes, '" + name + "[…]', are not supported"));
        if (text_.take(U'.')) { // a priority, which chooses between readings of the same text
            (void)text_.take(U'-');
            if (!text_.number(1'000'000)) return text_.refuse("a priority that is not a number");
        }
        text_.skip_spaces();
        if (!text_.take(U':')) return text_.refuse("expected ':' after '" + name + "'");
        const RuleId rule = named(name);
        if (rules_.body(rule) != Rules::kUndefined) return text_.refuse("'" + name + "' is defined a second time");
        in_terminal_ = is_terminal(name);
        PB_TRY(const auto parts, alternatives(0));
        rules_.define(rule, body_of(rules_, rule, parts));
        return {};
    }

    Result<> directive() {
        text_.next();
        const std::string what = text_.name();
        text_.skip_spaces();
        if (what == "import") return import();
        if (what == "ignore") {
            in_terminal_ = true;
            PB_TRY(const auto parts, alternatives(0));
            for (const Sequence& s : parts) ignored_parts_.push_back(rules_.sequence(s));
            return {};
        }
        return text_.refuse(unsupported("'%" + what + "' is not supported (supported: %import common…, %ignore)"));
    }

    // common.NAME, common.NAME -> NEW, common (NAME, NAME)
    Result<> import() {
        const std::string from = text_.name();
        if (from != "common")
            return text_.refuse(unsupported("%import of '" + from + "' is not supported (supported: common)"));
        text_.skip_spaces();
        if (text_.take(U'.')) {
            const std::string name = text_.name();
            text_.skip_spaces();
            std::string as = name;
            if (text_.take(U"->")) {
                text_.skip_spaces();
                as = text_.name();
            }
            return define_common(name, as);
        }
        if (!text_.take(U'(')) return text_.refuse("expected '.' or '(' after '%import common'");
        do {
            text_.skip_spaces();
            const std::string name = text_.name();
            PB_CHECK(define_common(name, name));
            text_.skip_spaces();
        } while (text_.take(U','));
        if (!text_.take(U')')) return text_.refuse("a '(' without its ')'");
        return {};
    }

    Result<> define_common(const std::string& name, const std::string& as) {
        const auto known = std::find_if(std::begin(kCommon), std::end(kCommon),
                                        [&](const auto& one) { return name == one.first; });
        if (known == std::end(kCommon))
            return text_.refuse(unsupported("common has no '" + name + "' that is supported"));
        const RuleId rule = named(as);
        if (rules_.body(rule) != Rules::kUndefined) return text_.refuse("'" + as + "' is defined a second time");
        PB_TRY(const ExprId body, common(name, known->second));
        rules_.define(rule, body);
        return {};
    }

    // What it uses has names of its own, which the grammar does not see.
    Result<ExprId> common(const std::string& name, const char* source) {
        if (const auto at = common_.find(name); at != common_.end()) return rules_.rule(at->second);
        const RuleId rule = common_[name] = rules_.declare("common." + name);
        PB_TRY(LarkText reader, LarkText::of(source));
        std::swap(text_, reader);
        const bool outer_terminal = std::exchange(in_terminal_, true), outer_common = std::exchange(in_common_, true);
        auto parts = alternatives(0);
        std::swap(text_, reader);
        in_terminal_ = outer_terminal;
        in_common_ = outer_common;
        if (!parts) return parts.failure();
        rules_.define(rule, body_of(rules_, rule, *parts));
        return rules_.rule(rule);
    }

    // To the end of the line, unless the next one begins with '|', or to the bracket that closes the group.
    Result<std::vector<Sequence>> alternatives(uint32_t depth) {
        if (depth > kMaxNesting) return text_.refuse("more than " + std::to_string(kMaxNesting) + " nested groups");
        std::vector<Sequence> out(1);
        for (;;) {
            text_.skip_spaces();
            const uint32_t c = text_.peek();
            if (text_.at_end()) break;
            if (c == '\n') {
                const size_t from = text_.position();
                text_.skip_lines();
                if (depth > 0 || text_.peek() == '|') continue;
                text_.go_to(from);
                break;
            }
            if (c == ')' || c == ']') {
                if (depth == 0) return text_.refuse("a bracket that closes none");
                break;
            }
            if (text_.take(U'|')) {
                out.emplace_back();
            } else if (text_.take(U"->")) { // names the tree
                text_.skip_spaces();
                if (text_.name().empty()) return text_.refuse("expected a name after '->'");
            } else {
                PB_TRY(const ExprId one, element(depth));
                PB_TRY(const ExprId repeated, quantified(one));
                out.back().push_back(repeated);
            }
        }
        return out;
    }

    ExprId token(ExprId e) { // in a rule, what is ignored may come before it
        return in_terminal_ || !ignored_ ? e : rules_.sequence({rules_.rule(*ignored_), e});
    }

    Result<ExprId> element(uint32_t depth) {
        const size_t from = text_.position();
        if (text_.take(U'"')) return string();
        if (text_.take(U'/')) return pattern();
        for (const auto& [open, close] : {std::pair{U'(', U')'}, {U'[', U']'}}) {
            if (!text_.take(open)) continue;
            PB_TRY(const auto parts, alternatives(depth + 1));
            if (!text_.take(close))
                return text_.refuse(std::string("a '") + static_cast<char>(open) + "' that does not close");
            std::vector<ExprId> choice;
            for (const Sequence& s : parts) choice.push_back(rules_.sequence(s));
            const ExprId group = rules_.choice(std::move(choice));
            return open == U'[' ? rules_.optional(group) : group;
        }
        const std::string name = text_.name();
        if (name.empty()) {
            if (text_.take(U'%'))
                return text_.refuse(unsupported("'%" + text_.name() + "' inside a rule is not supported"));
            if (text_.take(U'<'))
                return text_.refuse(unsupported("a token of the vocabulary, '<…>', is not supported"));
            text_.next();
            return text_.refuse("did not expect '" + text_.shown(from) + "'");
        }
        if (text_.peek() == '{') return text_.refuse(unsupported("the template '" + name + "{…}' is not supported"));
        if (in_common_) {
            for (const auto& [known, source] : kCommon)
                if (name == known) return common(name, source);
        }
        if (in_terminal_ && !is_terminal(name)) return text_.refuse("the rule '" + name + "' in a terminal");
        const ExprId out = rules_.rule(named(name));
        return is_terminal(name) ? token(out) : out;
    }

    Result<ExprId> quantified(ExprId one) {
        for (uint32_t n = 0;; ++n) {
            if (n > kMaxNesting)
                return text_.refuse("more than " + std::to_string(kMaxNesting) + " quantifiers in a row");
            text_.skip_spaces();
            if (text_.take(U'*')) one = rules_.repeat(one, 0, kUnbounded);
            else if (text_.take(U'+')) one = rules_.repeat(one, 1, kUnbounded);
            else if (text_.take(U'?')) one = rules_.optional(one);
            else if (text_.take(U'~')) {
                text_.skip_spaces();
                const auto low = text_.number(kMaxRepetitions);
                auto high = low;
                if (low && text_.take(U"..")) high = text_.number(kMaxRepetitions);
                if (!low || !high || *high < *low)
                    return text_.refuse("a repetition that is not ~n or ~n..m with n <= m <= " +
                                        std::to_string(kMaxRepetitions));
                one = rules_.repeat(one, *low, *high);
            } else return one;
        }
    }

    // "text", "text"i, "a".."z"
    Result<ExprId> string() {
        PB_TRY(const std::u32string first, text_.quoted());
        if (text_.peek() == '.' && text_.peek(1) == '.') {
            (void)text_.take(U"..");
            if (!text_.take(U'"')) return text_.refuse("expected a string after '..'");
            PB_TRY(const std::u32string last, text_.quoted());
            if (first.size() != 1 || last.size() != 1 || last < first)
                return text_.refuse("a range that is not of two characters in order");
            return token(rules_.chars(CodePoints::of({{first[0], last[0]}})));
        }
        if (!text_.take(U'i')) {
            std::string bytes;
            for (const char32_t c : first) bytes += utf8(c);
            return token(rules_.bytes(std::move(bytes)));
        }
        std::vector<ExprId> parts;
        for (const char32_t c : first) {
            PB_TRY(CodePoints set, in_either_case(CodePoints::of({{c, c}}), work_));
            parts.push_back(rules_.chars(std::move(set)));
        }
        return token(rules_.sequence(std::move(parts)));
    }

    Result<ExprId> pattern() { // after the slash
        PB_TRY(const std::string source, text_.slashed());
        RegexDialect dialect = plain_regex();
        for (uint32_t flag = text_.peek(); flag >= 'a' && flag <= 'z'; flag = text_.peek()) {
            if (flag == 's') dialect.dot = CodePoints::all();
            else if (flag == 'i') dialect.either_case = true;
            else
                return text_.refuse(unsupported("the flag '" + utf8(flag) +
                                                "' of a pattern is not supported (supported: i, s)"));
            text_.next();
        }
        auto body = parse_regex(rules_, source, dialect, work_);
        if (!body) return text_.refuse(fail(body.code(), "the pattern /" + source + "/: " + body.error() + ";"));
        return token(*body);
    }

    Rules& rules_;
    LarkText text_;
    Work& work_;
    std::map<std::string, RuleId> names_, common_;
    std::optional<RuleId> ignored_;
    std::vector<ExprId> ignored_parts_;
    bool in_terminal_ = false, in_common_ = false;
};

// Where the first definition begins: after white space and comments.
std::string_view first_definition(std::string_view text) {
    for (;;) {
        text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
        if (!text.starts_with("#") && !text.starts_with("//")) return text;
        text.remove_prefix(std::min(text.find('\n'), text.size()));
    }
}

bool has_ignore(std::string_view text) { // at the begin of a line: rules before it are read otherwise, too
    for (size_t at = text.find("%ignore"); at != text.npos; at = text.find("%ignore", at + 1)) {
        const size_t before = at == 0 ? text.npos : text.find_last_not_of(" \t", at - 1);
        if (before == text.npos || text[before] == '\n') return true;
    }
    return false;
}

}  // namespace

bool is_lark(std::string_view text) {
    text = first_definition(text);
    if (text.starts_with('%') || text.starts_with('?') || text.starts_with('!')) return true;
    size_t at = 0;
    while (at < text.size() && is_name_character(static_cast<unsigned char>(text[at]))) ++at;
    const size_t colon = std::min(text.find_first_not_of(" \t.-0123456789", at), text.size());
    return at > 0 && text.substr(colon).starts_with(':') && !text.substr(colon).starts_with("::=");
}

Result<RuleId> parse_lark(Rules& rules, std::string_view text, Work& work) {
    PB_TRY(LarkText reader, LarkText::of(text));
    PB_CHECK(work.spend(text.size()));
    return LarkParser(rules, std::move(reader), has_ignore(text), work).parse();
}

}  // namespace patchbay::grammar
