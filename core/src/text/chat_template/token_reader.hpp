// The tokens of a template as its parsers read them, with errors that say the line.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template/lexer.hpp"
#include "text/chat_template/value.hpp"

namespace patchbay::text::chat {

class TokenReader {
  public:
    static constexpr size_t kMaxNesting = 150; // of expressions and statements

    explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
    Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_.back(); }
    uint32_t line() const { return peek().line; }

    bool is(TokenKind kind, std::string_view text) const { return peek().kind == kind && peek().text == text; }
    bool is_op(std::string_view op) const { return is(TokenKind::kOperator, op); }
    bool is_name(std::string_view name) const { return is(TokenKind::kName, name); }
    bool take_op(std::string_view op) { return is_op(op) && (take(), true); }
    bool take_name(std::string_view name) { return is_name(name) && (take(), true); }

    void expect_op(std::string_view op) {
        if (!take_op(op)) unexpected("'" + std::string(op) + "'");
    }
    void expect(TokenKind kind, std::string_view what) {
        if (peek().kind != kind) unexpected(what);
        take();
    }
    std::string expect_name() {
        if (peek().kind != TokenKind::kName) unexpected("a name");
        return take().text;
    }
    [[noreturn]] void fault(std::string text) const { throw TemplateError{std::move(text), line()}; }
    [[noreturn]] void unexpected(std::string_view expected) const {
        const Token& t = peek();
        const std::string got = t.kind == TokenKind::kEnd        ? "the end of the template"
                                : t.kind == TokenKind::kText     ? "text"
                                : t.kind == TokenKind::kBlockEnd ? "'%}'"
                                : t.kind == TokenKind::kPrintEnd ? "'}}'"
                                                                 : "'" + t.text + "'";
        fault("got " + got + ", expected " + std::string(expected));
    }

    class Nested { // counts a level as long as it lives
      public:
        explicit Nested(TokenReader& reader) : reader_(reader) {
            if (++reader_.nesting_ > kMaxNesting)
                reader_.fault("nested more than " + std::to_string(kMaxNesting) + " deep");
        }
        ~Nested() { reader_.nesting_ -= 1; }
        Nested(const Nested&) = delete;
        Nested& operator=(const Nested&) = delete;

      private:
        TokenReader& reader_;
    };

  private:
    std::vector<Token> tokens_;
    size_t at_ = 0, nesting_ = 0;
};

}  // namespace patchbay::text::chat
