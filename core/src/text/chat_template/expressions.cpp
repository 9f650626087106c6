#include "text/chat_template/expressions.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {
namespace {

using Kind = Expression::Kind;
using Made = std::unique_ptr<Expression>;

Made make(Kind kind, uint32_t line, std::string name = {}) {
    return std::make_unique<Expression>(Expression{kind, line, std::move(name)});
}

Made literal(uint32_t line, Value value) {
    Made out = make(Kind::kLiteral, line);
    out->value = std::move(value);
    return out;
}

// Bounds what is walked by recursion.
ExpressionPtr done(Made out) {
    constexpr uint32_t kMaxDepth = 1000;
    for (const ExpressionPtr& item : out->items)
        if (item) out->depth = std::max(out->depth, item->depth + 1);
    for (const auto& [name, item] : out->named) out->depth = std::max(out->depth, item->depth + 1);
    if (out->depth > kMaxDepth) throw TemplateError{"an expression has too many parts", out->line};
    return out;
}

template <class... Items>
ExpressionPtr with(Made out, Items... items) {
    (out->items.push_back(std::move(items)), ...);
    return done(std::move(out));
}

class ExpressionParser {
  public:
    explicit ExpressionParser(TokenReader& in) : in_(in) {}

    ExpressionPtr conditional() {
        const TokenReader::Nested nested(in_);
        ExpressionPtr value = either();
        while (in_.is_name("if")) {
            const uint32_t line = in_.take().line;
            ExpressionPtr condition = either(), otherwise;
            if (in_.take_name("else")) otherwise = conditional();
            value = with(make(Kind::kConditional, line), std::move(condition), std::move(value), std::move(otherwise));
        }
        return value;
    }

    ExpressionPtr either() { return chain(0); } // all but `a if b`

    ExpressionPtr filters(ExpressionPtr value) { // filters, tests and calls after a value
        while (true) {
            if (in_.take_op("|")) value = filter(std::move(value));
            else if (in_.is_name("is")) value = test(std::move(value));
            else if (in_.is_op("(")) value = call(std::move(value));
            else return value;
        }
    }

    ExpressionPtr filter(ExpressionPtr value) { // at its name
        const uint32_t line = in_.line();
        std::string name = in_.expect_name();
        while (in_.take_op(".")) name += "." + in_.expect_name();
        if (!is_filter(name)) throw TemplateError{"no filter named '" + name + "'", line};
        Made out = make(Kind::kFilter, line, std::move(name));
        out->items.push_back(std::move(value));
        if (in_.is_op("(")) arguments(*out);
        return done(std::move(out));
    }

    ExpressionPtr tuple() {
        const uint32_t line = in_.line();
        ExpressionPtr first = conditional();
        if (!in_.is_op(",")) return first;
        Made out = make(Kind::kTuple, line);
        out->items.push_back(std::move(first));
        while (in_.take_op(",")) {
            if (in_.peek().kind == TokenKind::kBlockEnd || in_.peek().kind == TokenKind::kPrintEnd) break;
            out->items.push_back(conditional());
        }
        return done(std::move(out));
    }

    ExpressionPtr primary_and_postfix() { return postfix(primary()); }

  private:
    // Left-associative operators by their precedence, the loosest first. Between the words and the signs are `not` and
    // the comparisons.
    static constexpr size_t kSigns = 2;
    static constexpr const char* kOperators[][5] = {{"or"},     {"and"},
                                                    {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};

    ExpressionPtr operand(size_t level) {
        if (level == kSigns) return negation();
        return level == std::size(kOperators) ? unary(true) : chain(level);
    }

    ExpressionPtr chain(size_t level) {
        ExpressionPtr left = operand(level + 1);
        while (true) {
            const char* found = nullptr;
            for (const char* op : kOperators[level])
                if (op && (level < kSigns ? in_.is_name(op) : in_.is_op(op))) found = op;
            if (!found) return left;
            const uint32_t line = in_.take().line;
            left = with(make(Kind::kBinary, line, found), std::move(left), operand(level + 1));
        }
    }

    ExpressionPtr negation() {
        const TokenReader::Nested nested(in_);
        if (!in_.is_name("not")) return comparison();
        const uint32_t line = in_.take().line;
        return with(make(Kind::kUnary, line, "not"), negation());
    }

    ExpressionPtr comparison() {
        ExpressionPtr first = chain(kSigns);
        Made out;
        while (true) {
            std::string op;
            for (const char* known : {"==", "!=", "<=", ">=", "<", ">"})
                if (in_.is_op(known)) op = known;
            if (in_.is_name("in")) op = "in";
            if (in_.is_name("not") && in_.peek(1).kind == TokenKind::kName && in_.peek(1).text == "in") {
                in_.take();
                op = "not in";
            }
            if (op.empty()) break;
            const uint32_t line = in_.take().line;
            if (!out) {
                out = make(Kind::kCompare, line);
                out->items.push_back(std::move(first));
            }
            out->ops.push_back(std::move(op));
            out->items.push_back(chain(kSigns));
        }
        if (out) return done(std::move(out));
        return first;
    }

    ExpressionPtr unary(bool filtered) {
        const TokenReader::Nested nested(in_);
        ExpressionPtr value;
        if (in_.is_op("-") || in_.is_op("+")) {
            const Token sign = in_.take();
            value = with(make(Kind::kUnary, sign.line, sign.text), unary(false));
        } else {
            value = primary_and_postfix();
        }
        return filtered ? filters(std::move(value)) : std::move(value);
    }

    ExpressionPtr primary() {
        const Token t = in_.peek();
        switch (t.kind) {
            case TokenKind::kName:
                in_.take();
                if (t.text == "true" || t.text == "True") return literal(t.line, true);
                if (t.text == "false" || t.text == "False") return literal(t.line, false);
                if (t.text == "none" || t.text == "None") return literal(t.line, Value());
                return make(Kind::kName, t.line, t.text);
            case TokenKind::kString: {
                std::string text;
                while (in_.peek().kind == TokenKind::kString) text += in_.take().text;
                return literal(t.line, std::move(text));
            }
            case TokenKind::kInteger: {
                int64_t value = 0;
                const auto [end, error] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), value);
                if (error != std::errc{}) in_.fault("the number " + t.text.substr(0, 40) + " is too large");
                in_.take();
                return literal(t.line, value);
            }
            case TokenKind::kFloat: {
                double value = 0;
                const auto [end, error] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), value);
                if (error != std::errc{}) in_.fault("the number " + t.text.substr(0, 40) + " is out of range");
                in_.take();
                return literal(t.line, value);
            }
            case TokenKind::kOperator:
                if (t.text == "(") return parenthesis();
                if (t.text == "[") return list();
                if (t.text == "{") return dict();
                break;
            default:
                break;
        }
        in_.unexpected("an expression");
    }

    ExpressionPtr parenthesis() {
        const uint32_t line = in_.take().line;
        Made out = make(Kind::kTuple, line);
        bool is_tuple = in_.is_op(")");
        while (!in_.is_op(")")) {
            out->items.push_back(conditional());
            if (!in_.take_op(",")) break;
            is_tuple = true;
        }
        in_.expect_op(")");
        if (is_tuple) return done(std::move(out));
        return std::move(out->items.front());
    }

    ExpressionPtr list() {
        Made out = make(Kind::kList, in_.take().line);
        while (!in_.is_op("]")) {
            out->items.push_back(conditional());
            if (!in_.take_op(",")) break;
        }
        in_.expect_op("]");
        return done(std::move(out));
    }

    ExpressionPtr dict() {
        Made out = make(Kind::kDict, in_.take().line);
        while (!in_.is_op("}")) {
            out->items.push_back(conditional());
            in_.expect_op(":");
            out->items.push_back(conditional());
            if (!in_.take_op(",")) break;
        }
        in_.expect_op("}");
        return done(std::move(out));
    }

    ExpressionPtr postfix(ExpressionPtr value) {
        while (true) {
            if (in_.is_op(".")) {
                const uint32_t line = in_.take().line;
                if (in_.peek().kind == TokenKind::kInteger) { // a.0
                    value = with(make(Kind::kSubscript, line), std::move(value), primary());
                    continue;
                }
                value = with(make(Kind::kAttribute, line, in_.expect_name()), std::move(value));
            } else if (in_.is_op("[")) value = subscript(std::move(value));
            else if (in_.is_op("(")) value = call(std::move(value));
            else return value;
        }
    }

    ExpressionPtr subscript(ExpressionPtr value) {
        const uint32_t line = in_.take().line;
        ExpressionPtr start, stop, step;
        bool slice = false;
        const auto part = [&] { return in_.is_op(":") || in_.is_op("]") ? nullptr : conditional(); };
        start = part();
        if (in_.take_op(":")) {
            slice = true;
            stop = part();
            if (in_.take_op(":")) step = part();
        }
        if (!slice && !start) in_.unexpected("an index");
        in_.expect_op("]");
        if (!slice) return with(make(Kind::kSubscript, line), std::move(value), std::move(start));
        return with(make(Kind::kSlice, line), std::move(value), std::move(start), std::move(stop), std::move(step));
    }

    ExpressionPtr call(ExpressionPtr callee) {
        Made out = make(Kind::kCall, in_.line());
        out->items.push_back(std::move(callee));
        arguments(*out);
        return done(std::move(out));
    }

    void arguments(Expression& out) {
        in_.expect_op("(");
        while (!in_.is_op(")")) {
            if (in_.take_op("**")) out.named.emplace_back("**", conditional());
            else if (in_.take_op("*")) out.named.emplace_back("*", conditional());
            else if (in_.peek().kind == TokenKind::kName && in_.peek(1).kind == TokenKind::kOperator &&
                     in_.peek(1).text == "=") {
                std::string name = in_.take().text;
                in_.take();
                out.named.emplace_back(std::move(name), conditional());
            } else {
                if (!out.named.empty()) in_.unexpected("a named argument");
                out.items.push_back(conditional());
            }
            if (!in_.take_op(",")) break;
        }
        in_.expect_op(")");
    }

    ExpressionPtr test(ExpressionPtr value) {
        const uint32_t line = in_.take().line;
        const bool negated = in_.take_name("not");
        std::string name = in_.expect_name();
        if (!is_test(name)) throw TemplateError{"no test named '" + name + "'", line};
        Made out = make(Kind::kTest, line, std::move(name));
        out->items.push_back(std::move(value));
        const Token& next = in_.peek();
        const bool argument = next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
                              next.kind == TokenKind::kFloat || in_.is_op("[") || in_.is_op("{") ||
                              (next.kind == TokenKind::kName && next.text != "else" && next.text != "or" &&
                               next.text != "and" && next.text != "is" && next.text != "if" && next.text != "not" &&
                               next.text != "in");
        if (in_.is_op("(")) arguments(*out);
        else if (argument) out->items.push_back(primary_and_postfix());
        if (!negated) return done(std::move(out));
        return with(make(Kind::kUnary, line, "not"), done(std::move(out)));
    }

    TokenReader& in_;
};

}  // namespace

ExpressionPtr parse_expression(TokenReader& in) { return ExpressionParser(in).conditional(); }
ExpressionPtr parse_without_if(TokenReader& in) {
    const TokenReader::Nested nested(in);
    ExpressionPtr first = ExpressionParser(in).either();
    if (!in.is_op(",")) return first;
    Made out = make(Kind::kTuple, first->line);
    out->items.push_back(std::move(first));
    while (in.take_op(",")) out->items.push_back(ExpressionParser(in).either());
    return done(std::move(out));
}
ExpressionPtr parse_tuple(TokenReader& in) { return ExpressionParser(in).tuple(); }
ExpressionPtr parse_filters(TokenReader& in, ExpressionPtr of) {
    while (in.take_op("|")) of = ExpressionParser(in).filter(std::move(of));
    return of;
}
ExpressionPtr parse_first_filter(TokenReader& in, ExpressionPtr of) {
    return parse_filters(in, ExpressionParser(in).filter(std::move(of)));
}
ExpressionPtr parse_call_statement(TokenReader& in) {
    ExpressionPtr out = ExpressionParser(in).primary_and_postfix();
    if (out->kind != Kind::kCall) in.fault("expected a call");
    return out;
}

}  // namespace patchbay::text::chat
