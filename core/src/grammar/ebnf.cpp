#include "grammar/ebnf.hpp"

#include <map>

#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "grammar/regex.hpp"
#include "grammar/utf8_reader.hpp"

namespace patchbay::grammar {
namespace {


bool is_name(uint32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

class EbnfParser {
  public:
    EbnfParser(Rules& rules, Utf8Reader text) : rules_(rules), text_(std::move(text)) {}

    Result<RuleId> parse() {
        skip();
        while (!text_.at_end()) {
            const std::string name = read_name();
            if (name.empty()) return refuse("expected a rule, 'name ::= …',");
            skip();
            if (!text_.take(U"::=")) return refuse("expected '::=' after '" + name + "'");
            const RuleId rule = named(name);
            if (rules_.body(rule) != Rules::kUndefined) return refuse("rule '" + name + "' is defined a second time");
            PB_TRY(const auto parts, alternatives(0));
            rules_.define(rule, body_of(rules_, rule, parts));
            if (!rules_.fault().empty()) return invalid("grammar: " + rules_.fault());
        }
        for (const auto& [name, rule] : names_)
            if (rules_.body(rule) == Rules::kUndefined)
                return invalid("grammar: rule '" + name + "' is used and not defined");
        const auto root = names_.find("root");
        if (root == names_.end()) return invalid("grammar: no rule is named 'root'");
        return root->second;
    }

  private:
    using Sequence = std::vector<ExprId>;

    Failure refuse(const Failure& why) const { return fail(why.code, "grammar: " + why.text + " " + text_.where()); }
    Failure refuse(const std::string& what) const { return refuse(invalid(what)); }

    void skip() { // white space, line feeds and comments
        while (!text_.at_end()) {
            const uint32_t c = text_.peek();
            if (c == '#')
                while (!text_.at_end() && text_.peek() != '\n') text_.next();
            else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
                text_.next();
            else
                return;
        }
    }

    std::string read_name() {
        std::string out;
        while (is_name(text_.peek())) out += static_cast<char>(text_.next());
        return out;
    }

    RuleId named(const std::string& name) {
        const auto at = names_.find(name);
        if (at != names_.end()) return at->second;
        return names_[name] = rules_.declare(name);
    }

    bool at_rule() { // a name followed by '::=': the rule before it has ended
        const size_t from = text_.position();
        const bool name = !read_name().empty();
        skip();
        const bool out = name && text_.take(U"::=");
        text_.go_to(from);
        return out;
    }

    Result<std::vector<Sequence>> alternatives(uint32_t depth) {
        if (depth > kMaxNesting) return refuse("more than " + std::to_string(kMaxNesting) + " nested groups");
        std::vector<Sequence> out(1);
        for (skip(); !text_.at_end() && text_.peek() != ')' && !at_rule(); skip()) {
            if (text_.take(U'|')) {
                out.emplace_back();
                continue;
            }
            PB_TRY(const ExprId one, element(depth));
            PB_TRY(const ExprId repeated, quantified(one));
            out.back().push_back(repeated);
        }
        if (depth == 0 && text_.peek() == ')') return refuse("')' without a '('");
        return out;
    }

    Result<ExprId> element(uint32_t depth) {
        if (text_.take(U'"')) return literal();
        if (text_.take(U'[')) return bracket();
        if (text_.take(U'.')) return rules_.chars(CodePoints::all());
        if (text_.peek() == '<' || text_.peek() == '!')
            return refuse(unsupported("a token of the vocabulary, '<…>', is not supported"));
        if (text_.take(U'(')) {
            if (text_.peek() == '=' || text_.peek() == '!') return refuse(unsupported("a lookahead is not supported"));
            PB_TRY(const auto parts, alternatives(depth + 1));
            if (!text_.take(U')')) return refuse("a '(' without its ')'");
            std::vector<ExprId> choice;
            for (const Sequence& s : parts) choice.push_back(rules_.sequence(s));
            return rules_.choice(std::move(choice));
        }
        const std::string name = read_name();
        if (!name.empty()) return rules_.rule(named(name));
        const size_t from = text_.position();
        text_.next();
        return refuse("did not expect '" + text_.shown(from) + "'");
    }

    Result<ExprId> quantified(ExprId one) {
        for (uint32_t n = 0;; ++n) { // "a"*? is ("a"*)?
            if (n > kMaxNesting) return refuse("more than " + std::to_string(kMaxNesting) + " quantifiers in a row");
            const size_t from = text_.position();
            skip();
            if (text_.take(U'*'))
                one = rules_.repeat(one, 0, kUnbounded);
            else if (text_.take(U'+'))
                one = rules_.repeat(one, 1, kUnbounded);
            else if (text_.take(U'?'))
                one = rules_.optional(one);
            else if (text_.take(U'{')) {
                PB_TRY(one, braces(one));
            } else {
                text_.go_to(from);
                return one;
            }
        }
    }

    Result<ExprId> braces(ExprId one) {
        const auto wrong = [&] {
            return refuse("a repetition that is not {m}, {m,} or {m,n} with m <= n <= " +
                          std::to_string(kMaxRepetitions));
        };
        skip();
        const auto low = text_.number(kMaxRepetitions);
        if (!low) return wrong();
        uint32_t high = *low;
        skip();
        if (text_.take(U',')) {
            skip();
            high = kUnbounded;
            if (text_.peek() != '}') {
                const auto max_count = text_.number(kMaxRepetitions);
                if (!max_count || *max_count < *low) return wrong();
                high = *max_count;
            }
        }
        skip();
        if (!text_.take(U'}')) return wrong();
        return rules_.repeat(one, *low, high);
    }

    Result<ExprId> literal() {
        std::string out;
        while (text_.peek() != '"') {
            if (text_.at_end()) return refuse("a literal without its closing '\"'");
            PB_TRY(const uint32_t c, character());
            out += utf8(c);
        }
        text_.next();
        return rules_.bytes(std::move(out));
    }

    Result<ExprId> bracket() {
        std::vector<CodePoints::Range> ranges;
        const bool inverted = text_.take(U'^');
        while (text_.peek() != ']') {
            if (text_.at_end()) return refuse("a '[' without its ']'");
            PB_TRY(const uint32_t low, character());
            uint32_t high = low;
            if (text_.peek() == '-' && text_.peek(1) != ']') {
                text_.next();
                if (text_.at_end()) return refuse("a '[' without its ']'");
                PB_TRY(high, character());
            }
            if (high < low) return refuse("a range that ends before it begins");
            ranges.push_back({low, high});
        }
        text_.next();
        const CodePoints set = CodePoints::of(std::move(ranges));
        return rules_.chars(inverted ? set.inverted() : set.common(CodePoints::all()));
    }

    Result<uint32_t> character() {
        const uint32_t c = text_.next();
        if (c != '\\') return c;
        if (text_.at_end()) return refuse("a '\\' with nothing after it");
        const uint32_t e = text_.next();
        switch (e) {
            case 'n': return uint32_t{'\n'};
            case 'r': return uint32_t{'\r'};
            case 't': return uint32_t{'\t'};
            case '\\':
            case '"':
            case '\'':
            case '[':
            case ']':
            case '-':
            case '^':
            case '/': return e;
            case 'x':
            case 'u':
            case 'U': {
                const auto value = text_.hex(e == 'x' ? 2 : e == 'u' ? 4 : 8);
                if (!value || !is_character(*value)) return refuse("an escape that is not a character");
                return *value;
            }
            default: return refuse(unsupported("'\\" + utf8(e) + "' is not supported"));
        }
    }

    Rules& rules_;
    Utf8Reader text_;
    std::map<std::string, RuleId> names_;
};

}  // namespace

// a ::= a x | b is a ::= b x*
ExprId body_of(Rules& rules, RuleId rule, const std::vector<std::vector<ExprId>>& alternatives) {
    std::vector<ExprId> plain, after;
    for (const std::vector<ExprId>& s : alternatives) {
        const bool recursive = !s.empty() && rules[s[0]].kind == Expr::Kind::kRule && rules[s[0]].rule == rule;
        if (!recursive)
            plain.push_back(rules.sequence(s));
        else if (s.size() > 1)
            after.push_back(rules.sequence({s.begin() + 1, s.end()}));
    }
    const ExprId first = plain.empty() ? rules.nothing() : rules.choice(std::move(plain));
    if (after.empty()) return first;
    return rules.sequence({first, rules.repeat(rules.choice(std::move(after)), 0, kUnbounded)});
}

Result<RuleId> parse_ebnf(Rules& rules, std::string_view text, Work& work) {
    PB_TRY(Utf8Reader reader, Utf8Reader::of(text, kMaxEbnfBytes, "a grammar"));
    PB_CHECK(work.spend(text.size()));
    return EbnfParser(rules, std::move(reader)).parse();
}

}  // namespace patchbay::grammar
