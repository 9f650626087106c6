#include "grammar/regex.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "grammar/unicode_classes.hpp"
#include "grammar/utf8_reader.hpp"

namespace patchbay::grammar {
namespace {

constexpr uint64_t kPropertyWork = 1000; // of a class of Unicode, which may be a new one

CodePoints digits() { return CodePoints::of({{'0', '9'}}); }
CodePoints word() { return CodePoints::of({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}); }

class RegexParser {
  public:
    RegexParser(Rules& rules, Utf8Reader text, const RegexDialect& dialect, Work& work)
        : rules_(rules), text_(std::move(text)), dialect_(dialect), work_(work) {}

    Result<ExprId> parse() {
        PB_TRY(const ExprId out, alternatives(0));
        if (!text_.at_end()) return refuse("')' without a '('");
        return out;
    }

  private:
    Failure refuse(const Failure& why) const { return fail(why.code, "regex: " + why.text + " " + text_.where()); }
    Failure refuse(const std::string& what) const { return refuse(invalid(what)); }

    Result<ExprId> alternatives(uint32_t depth) {
        if (depth > kMaxNesting) return refuse("more than " + std::to_string(kMaxNesting) + " nested groups");
        std::vector<ExprId> parts;
        do {
            PB_TRY(const ExprId part, alternative(depth));
            parts.push_back(part);
        } while (text_.take(U'|'));
        return rules_.choice(std::move(parts));
    }

    Result<ExprId> alternative(uint32_t depth) {
        const bool whole = dialect_.match == RegexDialect::Match::kWhole;
        bool begins = false, ends = false;
        std::vector<ExprId> parts;
        while (!text_.at_end() && text_.peek() != '|' && text_.peek() != ')') {
            const bool outermost = depth == 0;
            if (text_.peek() == '^') {
                if (!outermost || !parts.empty() || begins)
                    return refuse("'^' elsewhere than at the begin of the pattern or of one of its alternatives");
                text_.next();
                begins = true;
                continue;
            }
            if (text_.peek() == '$') {
                text_.next();
                if (!outermost || (!text_.at_end() && text_.peek() != '|'))
                    return refuse("'$' elsewhere than at the end of the pattern or of one of its alternatives");
                ends = true;
                continue;
            }
            PB_TRY(const ExprId one, atom(depth));
            PB_TRY(const ExprId repeated, quantified(one));
            parts.push_back(repeated);
        }
        if (depth == 0 && !whole) {
            PB_CHECK(make_anything());
            if (!begins) parts.insert(parts.begin(), *anything_);
            if (!ends) parts.push_back(*anything_);
        }
        return rules_.sequence(std::move(parts));
    }

    Result<ExprId> quantified(ExprId one) {
        uint32_t min = 0, max = 0;
        bool braces = false;
        if (text_.take(U'*'))
            max = kUnbounded;
        else if (text_.take(U'+'))
            min = 1, max = kUnbounded;
        else if (text_.take(U'?'))
            max = 1;
        else if (text_.peek() == '{')
            braces = true;
        else
            return one;
        if (braces) {
            text_.next();
            const auto low = text_.number(kMaxRepetitions);
            if (!low)
                return refuse("a repetition that is not {m}, {m,} or {m,n} with numbers up to " +
                              std::to_string(kMaxRepetitions) + " (a brace itself is \\{)");
            min = max = *low;
            if (text_.take(U',')) {
                max = kUnbounded;
                if (text_.peek() != '}') {
                    const auto high = text_.number(kMaxRepetitions);
                    if (!high || *high < min) return refuse("a repetition that ends before it begins, or is too large");
                    max = *high;
                }
            }
            if (!text_.take(U'}')) return refuse("a repetition without its '}'");
        }
        if (text_.take(U'?')) {
        } // as few as possible: the same texts
        else if (text_.peek() == '+')
            return refuse(unsupported("a possessive quantifier is not supported"));
        if (text_.peek() == '*' || text_.peek() == '?' || text_.peek() == '{' || text_.peek() == '+')
            return refuse("a quantifier after a quantifier");
        return rules_.repeat(one, min, max);
    }

    Result<> make_anything() { // text around the part that matches
        if (anything_) return {};
        PB_TRY(const ExprId one, spelled(CodePoints::all()));
        anything_ = rules_.repeat(one, 0, kUnbounded);
        return {};
    }

    Result<ExprId> spelled(const CodePoints& set) {
        PB_CHECK(work_.spend(set.ranges().size()));
        if (!rules_.fault().empty()) return invalid("regex: " + rules_.fault());
        return dialect_.spell(rules_, set);
    }

    Result<ExprId> atom(uint32_t depth) {
        const uint32_t c = text_.next();
        switch (c) {
            case '(': return group(depth);
            case '[': {
                PB_TRY(const CodePoints set, bracket());
                return spelled(set);
            }
            case '.': return spelled(dialect_.dot);
            case '\\': {
                PB_TRY(const Escape e, escape());
                PB_TRY(const CodePoints set, listed(e));
                return spelled(set);
            }
            case '*':
            case '+':
            case '?':
            case '{': return refuse("a quantifier with nothing in front of it");
            default: {
                PB_TRY(const CodePoints set, listed(CodePoints::of({{c, c}})));
                return spelled(set);
            }
        }
    }

    // What a pattern stands for that lists these: a class is inverted after this.
    Result<CodePoints> listed(CodePoints set) {
        if (!dialect_.either_case) return set;
        return in_either_case(set, work_);
    }

    Result<ExprId> group(uint32_t depth) {
        if (text_.take(U'?')) {
            const size_t from = text_.position() - 2;
            const auto look_around = [&](const char* what) {
                return refuse(unsupported(std::string(what) + ", '" + text_.shown(from) + "', is not supported"));
            };
            if (text_.take(U"=") || text_.take(U"!")) return look_around("a lookahead");
            if (text_.take(U"<=") || text_.take(U"<!")) return look_around("a lookbehind");
            if (text_.take(U"P<") || text_.take(U"<")) { // a name makes no difference
                while (!text_.at_end() && text_.peek() != '>') text_.next();
                if (!text_.take(U'>')) return refuse("a group's name without its '>'");
            } else if (!text_.take(U':')) {
                text_.next();
                return refuse(unsupported("a group that begins with '" + text_.shown(from) + "' is not supported"));
            }
        }
        PB_TRY(const ExprId inner, alternatives(depth + 1));
        if (!text_.take(U')')) return refuse("a '(' without its ')'");
        return inner;
    }

    struct Escape {
        CodePoints set;
        bool one;                // character
        bool by_property = false; // of Unicode: nothing is known of characters that it has not assigned
    };
    Result<CodePoints> listed(const Escape& e) { // \w and the like are as they are: \W has no letter
        if (!e.one && !e.by_property) return e.set;
        return listed(e.set);
    }

    Result<Escape> escape() {
        if (text_.at_end()) return refuse("a '\\' with nothing after it");
        const auto one = [](uint32_t c) { return Escape{CodePoints::of({{c, c}}), true}; };
        const uint32_t c = text_.next();
        switch (c) {
            case 'd': return Escape{digits(), false};
            case 'D': return Escape{digits().inverted(), false};
            case 'w': return Escape{word(), false};
            case 'W': return Escape{word().inverted(), false};
            case 's': return Escape{dialect_.space, false};
            case 'S': return Escape{dialect_.space.inverted(), false};
            case 't': return one('\t');
            case 'n': return one('\n');
            case 'r': return one('\r');
            case 'f': return one('\f');
            case 'v': return one('\v');
            case 'c': {
                const uint32_t letter = text_.at_end() ? 0 : text_.next() | 0x20;
                if (letter < 'a' || letter > 'z') return refuse("a '\\c' without a letter");
                return one(letter % 32);
            }
            case 'p':
            case 'P': return property(c == 'P');
            case '0':
                if (text_.peek() >= '0' && text_.peek() <= '9') return refuse("an octal escape");
                return one(0);
            case 'x':
            case 'u': {
                std::optional<uint32_t> value;
                if (text_.take(U'{')) {
                    for (size_t n = 6; n > 0 && !value; --n) {
                        const size_t from = text_.position();
                        value = text_.hex(n);
                        if (value && !text_.take(U'}')) value.reset();
                        if (!value) text_.go_to(from);
                    }
                } else {
                    value = text_.hex(c == 'x' ? 2 : 4);
                    if (c == 'u' && value) value = with_low_surrogate(*value);
                }
                if (!value || !is_character(*value)) return refuse("an escape that is not a character");
                return one(*value);
            }
            default: break;
        }
        if (c >= '1' && c <= '9') return refuse(unsupported("a backreference, '\\" + utf8(c) + "', is not supported"));
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
            return refuse(unsupported("'\\" + utf8(c) + "' is not supported"));
        return one(c);
    }

    // After \uHHHH: the character of a pair, where it is the first surrogate of one.
    uint32_t with_low_surrogate(uint32_t high) {
        const size_t from = text_.position();
        if (high < 0xD800 || high > 0xDBFF || !text_.take(U"\\u")) return high;
        const auto low = text_.hex(4);
        if (low && *low >= 0xDC00 && *low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (*low - 0xDC00);
        text_.go_to(from);
        return high;
    }

    Result<Escape> property(bool inverted) { // after \p or \P
        std::string name;
        if (!text_.take(U'{')) {
            name = text_.at_end() ? "" : utf8(text_.next());
        } else {
            inverted = text_.take(U'^') != inverted;
            while (!text_.at_end() && text_.peek() != '}') name += utf8(text_.next());
            if (!text_.take(U'}')) return refuse("a '\\p{' without its '}'");
        }
        PB_CHECK(work_.spend(kPropertyWork));
        const auto known = unicode_class(name);
        if (!known) return refuse(known.failure());
        const CodePoints& set = **known;
        if (!inverted) return Escape{set, false, true};
        PB_TRY(const CodePoints excluded, listed(set));
        return Escape{assigned_characters().without(excluded), false, true};
    }

    Result<CodePoints> bracket() {
        std::vector<CodePoints::Range> ranges;
        CodePoints set; // of the classes in it
        bool by_property = false;
        const bool inverted = text_.take(U'^');
        for (bool first = true;; first = false) {
            if (text_.at_end()) return refuse("a '[' without its ']'");
            if (text_.peek() == '[' && (text_.peek(1) == ':' || text_.peek(1) == '.' || text_.peek(1) == '='))
                return refuse(unsupported("a POSIX class is not supported"));
            if (text_.peek() == ']' && !first) break;
            if (text_.peek() == ']') return refuse("an empty class, or a ']' in it that is not \\],");
            PB_TRY(const Escape low, member());
            by_property = by_property || low.by_property;
            if (text_.peek() == '-' && text_.peek(1) != ']') {
                text_.next();
                if (text_.at_end()) return refuse("a '[' without its ']'");
                PB_TRY(const Escape high, member());
                if (!low.one || !high.one) return refuse("a range between what is not one character");
                const uint32_t a = low.set.ranges()[0].low, b = high.set.ranges()[0].low;
                if (a > b) return refuse("a range that ends before it begins");
                ranges.push_back({a, b});
            } else if (low.one) {
                ranges.push_back(low.set.ranges()[0]);
            } else {
                PB_CHECK(work_.spend(set.ranges().size() + low.set.ranges().size()));
                PB_TRY(const CodePoints in_class, listed(low));
                set.add(in_class);
            }
        }
        text_.next();
        PB_TRY(const CodePoints characters, listed(CodePoints::of(std::move(ranges))));
        set.add(characters);
        if (inverted && by_property) return assigned_characters().without(set);
        return inverted ? set.inverted() : set.common(CodePoints::all());
    }

    Result<Escape> member() {
        const uint32_t c = text_.next();
        if (c != '\\') return Escape{CodePoints::of({{c, c}}), true};
        if (text_.take(U'b')) return Escape{CodePoints::of({{'\b', '\b'}}), true};
        return escape();
    }

    Rules& rules_;
    Utf8Reader text_;
    const RegexDialect& dialect_;
    Work& work_;
    std::optional<ExprId> anything_;
};

}  // namespace

RegexDialect plain_regex() {
    return {CodePoints::of({{'\n', '\n'}}).inverted(), CodePoints::of({{'\t', '\r'}, {' ', ' '}}),
            RegexDialect::Match::kWhole, [](Rules& rules, const CodePoints& set) { return rules.chars(set); }};
}

Result<ExprId> parse_regex(Rules& rules, std::string_view pattern, const RegexDialect& dialect, Work& work) {
    PB_TRY(Utf8Reader text, Utf8Reader::of(pattern, kMaxRegexBytes, "a regex"));
    PB_CHECK(work.spend(pattern.size()));
    PB_TRY(const ExprId out, RegexParser(rules, std::move(text), dialect, work).parse());
    if (!rules.fault().empty()) return invalid("regex: " + rules.fault());
    return out;
}

}  // namespace patchbay::grammar
