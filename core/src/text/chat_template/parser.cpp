#include "text/chat_template/parser.hpp"

#include <initializer_list>

#include "text/chat_template/expressions.hpp"

namespace patchbay::text::chat {
namespace {

using Kind = Statement::Kind;
using Made = std::unique_ptr<Statement>;

Made make_statement(Kind kind, uint32_t line, std::string text = {}) {
    return std::make_unique<Statement>(Statement{kind, line, std::move(text)});
}

ExpressionPtr captured(uint32_t line) {
    return std::make_unique<Expression>(Expression{Expression::Kind::kName, line, Statement::kCaptured});
}

class TemplateParser {
  public:
    explicit TemplateParser(std::string_view source) : in_(tokens_of(source)) {}

    Block run() {
        Block out = block({}, "");
        if (in_.peek().kind != TokenKind::kEnd) in_.unexpected("a statement");
        return out;
    }

  private:
    // Statements up to one of the tags `ends`, whose name is the next token then. opened: the tag that wants them.
    Block block(std::initializer_list<const char*> ends, std::string_view opened, uint32_t opened_line = 0) {
        const TokenReader::Nested nested(in_);
        Block out;
        while (true) {
            const Token t = in_.peek();
            if (t.kind == TokenKind::kEnd) {
                if (ends.size() == 0) return out;
                throw TemplateError{"'" + std::string(opened) + "' has no end, expected '" +
                                        std::string(*(ends.end() - 1)) + "'", opened_line};
            }
            in_.take();
            if (t.kind == TokenKind::kText) {
                out.push_back(make_statement(Kind::kText, t.line, t.text));
            } else if (t.kind == TokenKind::kPrintBegin) {
                Made print = make_statement(Kind::kPrint, t.line);
                print->value = parse_tuple(in_);
                in_.expect(TokenKind::kPrintEnd, "'}}'");
                out.push_back(std::move(print));
            } else {
                for (const char* end : ends)
                    if (in_.is_name(end)) return out;
                out.push_back(statement());
            }
        }
    }

    void end_tag() { in_.expect(TokenKind::kBlockEnd, "'%}'"); }
    void end_tag(std::string_view name) {
        if (!in_.take_name(name)) in_.unexpected("'" + std::string(name) + "'");
        end_tag();
    }

    std::unique_ptr<const Statement> statement() {
        const uint32_t line = in_.line();
        const std::string word = in_.expect_name();
        if (word == "if") return branch(line);
        if (word == "for") return loop(line);
        if (word == "set") return assignment(line);
        if (word == "macro") return macro(line);
        if (word == "call") return call(line);
        if (word == "filter") return filter(line);
        if (word == "with") return with(line);
        if (word == "break" || word == "continue") {
            if (loops_ == 0) throw TemplateError{"'" + word + "' outside of a loop", line};
            end_tag();
            return make_statement(word == "break" ? Kind::kBreak : Kind::kContinue, line);
        }
        if (word == "generation") { // marks what a model has written, for training
            end_tag();
            Made out = make_statement(Kind::kGroup, line);
            out->body = block({"endgeneration"}, word, line);
            end_tag("endgeneration");
            return out;
        }
        for (const char* known : {"include", "import", "from", "extends", "block", "do", "trans", "autoescape"})
            if (word == known) throw TemplateError{"'" + word + "' is not supported in chat templates", line};
        throw TemplateError{"unknown statement '" + word + "'", line};
    }

    Made branch(uint32_t line) {
        const TokenReader::Nested nested(in_);
        Made out = make_statement(Kind::kIf, line);
        out->value = parse_tuple(in_);
        end_tag();
        out->body = block({"elif", "else", "endif"}, "if", line);
        const uint32_t next = in_.line();
        if (in_.take_name("elif")) {
            out->otherwise.push_back(branch(next));
            return out;
        }
        if (in_.take_name("else")) {
            end_tag();
            out->otherwise = block({"endif"}, "else", next);
        }
        end_tag("endif");
        return out;
    }

    Target names() {
        Target out;
        const bool bracket = in_.take_op("(");
        do {
            out.names.push_back(in_.expect_name());
            if (!in_.is_op(",")) break;
            out.unpacks = true;
            in_.take();
        } while (in_.peek().kind == TokenKind::kName && !in_.is_name("in"));
        if (bracket) in_.expect_op(")");
        return out;
    }

    Made loop(uint32_t line) {
        Made out = make_statement(Kind::kFor, line);
        out->target = names();
        if (!in_.take_name("in")) in_.unexpected("'in'");
        out->value = parse_without_if(in_);
        if (in_.take_name("if")) out->condition = parse_expression(in_);
        if (in_.is_name("recursive")) in_.fault("recursive loops are not supported in chat templates");
        end_tag();
        loops_ += 1;
        out->body = block({"else", "endfor"}, "for", line);
        loops_ -= 1;
        const uint32_t next = in_.line();
        if (in_.take_name("else")) {
            end_tag();
            out->otherwise = block({"endfor"}, "else", next);
        }
        end_tag("endfor");
        return out;
    }

    Made assignment(uint32_t line) {
        Target target;
        if (in_.peek(1).kind == TokenKind::kOperator && in_.peek(1).text == ".") {
            target.names.push_back(in_.expect_name());
            in_.take();
            target.field = in_.expect_name();
        } else {
            target = names();
        }
        if (in_.take_op("=")) {
            Made out = make_statement(Kind::kSet, line);
            out->target = std::move(target);
            out->value = parse_tuple(in_);
            end_tag();
            return out;
        }
        Made out = make_statement(Kind::kCapture, line);
        out->target = std::move(target);
        if (in_.is_op("|")) out->value = parse_filters(in_, captured(line));
        if (in_.peek().kind != TokenKind::kBlockEnd) in_.unexpected("'='");
        end_tag();
        out->body = block({"endset"}, "set", line);
        end_tag("endset");
        return out;
    }

    std::vector<Parameter> parameters() {
        std::vector<Parameter> out;
        in_.expect_op("(");
        while (!in_.is_op(")")) {
            Parameter p{in_.expect_name(), nullptr};
            if (in_.take_op("=")) p.default_value = parse_expression(in_);
            else if (!out.empty() && out.back().default_value)
                in_.fault("parameter '" + p.name + "' has no default, though one before it has");
            out.push_back(std::move(p));
            if (!in_.take_op(",")) break;
        }
        in_.expect_op(")");
        return out;
    }

    // A body that runs when it is called: no loop around it can be left from there.
    Block called_body(const char* end, std::string_view opened, uint32_t line) {
        const size_t loops = std::exchange(loops_, 0);
        Block out = block({end}, opened, line);
        loops_ = loops;
        end_tag(end);
        return out;
    }

    Made macro(uint32_t line) {
        Made out = make_statement(Kind::kMacro, line, in_.expect_name());
        out->parameters = parameters();
        end_tag();
        out->body = called_body("endmacro", "macro", line);
        return out;
    }

    Made call(uint32_t line) {
        Made out = make_statement(Kind::kCall, line);
        if (in_.is_op("(")) out->parameters = parameters();
        out->value = parse_call_statement(in_);
        end_tag();
        out->body = called_body("endcall", "call", line);
        return out;
    }

    Made filter(uint32_t line) {
        Made out = make_statement(Kind::kFilter, line);
        out->value = parse_first_filter(in_, captured(line));
        end_tag();
        out->body = block({"endfilter"}, "filter", line);
        end_tag("endfilter");
        return out;
    }

    Made with(uint32_t line) {
        Made out = make_statement(Kind::kWith, line);
        while (in_.peek().kind != TokenKind::kBlockEnd) {
            std::string name = in_.expect_name();
            in_.expect_op("=");
            out->parameters.push_back({std::move(name), parse_expression(in_)});
            if (!in_.take_op(",")) break;
        }
        end_tag();
        out->body = block({"endwith"}, "with", line);
        end_tag("endwith");
        return out;
    }

    TokenReader in_;
    size_t loops_ = 0; // around the statement that is read
};

}  // namespace

Block parse_template(std::string_view source) { return TemplateParser(source).run(); }

}  // namespace patchbay::text::chat
