#include "text/chat_template/lexer.hpp"

#include <algorithm>
#include <array>

#include "base/numbers.hpp"
#include "base/utf8.hpp"
#include "text/chat_template/numbers.hpp"
#include "text/chat_template/strings.hpp"
#include "text/chat_template/value.hpp"

namespace patchbay::text::chat {
namespace {

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
  public:
    explicit Lexer(std::string_view source) {
        for (size_t i = 0; i < source.size(); ++i) { // line ends as Jinja reads them
            if (source[i] == '\r') {
                text_ += '\n';
                if (i + 1 < source.size() && source[i + 1] == '\n') i += 1;
            } else text_ += source[i];
        }
        if (text_.ends_with('\n')) text_.pop_back();
    }

    std::vector<Token> run() {
        while (at_ < text_.size()) {
            const size_t tag = next_tag();
            take_text(tag);
            if (tag == text_.size()) break;
            const char kind = text_[tag + 1];
            move_to(tag);
            if (kind == '#') take_comment();
            else take_tag(kind == '%' ? TokenKind::kBlockBegin : TokenKind::kPrintBegin);
        }
        add(TokenKind::kEnd, "");
        return std::move(out_);
    }

  private:
    [[noreturn]] void fault(std::string text) const { throw TemplateError{std::move(text), line_}; }
    void add(TokenKind kind, std::string text) { out_.push_back({kind, std::move(text), line_}); }
    void move_to(size_t place) {
        line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<long>(at_),
                                                  text_.begin() + static_cast<long>(place), '\n'));
        at_ = place;
    }
    size_t after_white(size_t place) const {
        while (const size_t n = white_at(text_, place)) place += n;
        return place;
    }
    bool is_at(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }

    size_t next_tag() const {
        for (size_t i = at_; i + 1 < text_.size(); ++i)
            if (text_[i] == '{' && (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#')) return i;
        return text_.size();
    }

    // Text up to the tag at `end`, without the white space that the tag takes away.
    void take_text(size_t end) {
        std::string_view text = std::string_view(text_).substr(at_, end - at_);
        const char sign = end + 2 < text_.size() ? text_[end + 2] : ' ';
        if (end < text_.size() && sign == '-') {
            text = strip(text, Sides::kRight);
        } else if (end < text_.size() && sign != '+' && text_[end + 1] != '{') {
            const size_t line = text.rfind('\n');
            const size_t from = line == text.npos ? 0 : line + 1;
            const bool whole_line = line != text.npos || at_line_start_;
            const auto rest = text.substr(from);
            if (whole_line && strip(rest, Sides::kBoth).empty()) text = text.substr(0, from);
        }
        if (!text.empty()) add(TokenKind::kText, std::string(text));
        move_to(end);
    }

    // At the end of a tag: what stands after it is taken as its sign says.
    void end_tag(char sign, TokenKind kind) {
        const size_t from = at_;
        if (sign == '-') {
            move_to(after_white(at_));
        } else if (sign != '+' && kind != TokenKind::kPrintEnd && at_ < text_.size() && text_[at_] == '\n') {
            move_to(at_ + 1);
        }
        at_line_start_ = at_ > from && text_[at_ - 1] == '\n';
    }

    void take_comment() {
        const size_t end = text_.find("#}", at_ + 2);
        if (end == std::string::npos) fault("a comment has no end, expected '#}'");
        const char sign = end > at_ + 2 ? text_[end - 1] : ' ';
        move_to(end + 2);
        end_tag(sign, TokenKind::kBlockEnd);
    }

    void take_tag(TokenKind begin) {
        const TokenKind end = begin == TokenKind::kBlockBegin ? TokenKind::kBlockEnd : TokenKind::kPrintEnd;
        const std::string_view closing = begin == TokenKind::kBlockBegin ? "%}" : "}}";
        if (begin == TokenKind::kBlockBegin && take_raw()) return;
        add(begin, "");
        at_ += 2;
        if (is_at("-") || is_at("+")) at_ += 1;
        size_t open = 0; // brackets
        while (true) {
            move_to(after_white(at_));
            if (at_ == text_.size()) fault("a tag has no end, expected '" + std::string(closing) + "'");
            if (open == 0) {
                const bool signed_end = (is_at("-") || is_at("+")) && text_.compare(at_ + 1, 2, closing) == 0;
                if (signed_end || is_at(closing)) {
                    const char sign = signed_end ? text_[at_] : ' ';
                    add(end, "");
                    at_ += signed_end ? 3 : 2;
                    return end_tag(sign, end);
                }
            }
            take_token(open);
        }
    }

    // The tag that begins here is {% raw %}: its content is text.
    bool take_raw() {
        const auto word_at = [&](size_t place, std::string_view word) -> size_t { // after the tag; 0: it is not it
            size_t i = place + 2;
            if (i < text_.size() && (text_[i] == '-' || text_[i] == '+')) i += 1;
            i = after_white(i);
            if (text_.compare(i, word.size(), word) != 0) return 0;
            i = after_white(i + word.size());
            if (i < text_.size() && (text_[i] == '-' || text_[i] == '+')) i += 1;
            return text_.compare(i, 2, "%}") == 0 ? i + 2 : 0;
        };
        const size_t inside = word_at(at_, "raw");
        if (inside == 0) return false;
        const char sign = text_[inside - 3];
        move_to(inside);
        end_tag(sign == '-' ? '-' : '+', TokenKind::kBlockEnd); // a new line after it is a part of the text
        for (size_t i = at_; (i = text_.find("{%", i)) != std::string::npos; i += 2) {
            const size_t after = word_at(i, "endraw");
            if (after == 0) continue;
            take_text(i);
            const char end_sign = text_[after - 3];
            move_to(after);
            end_tag(end_sign, TokenKind::kBlockEnd);
            return true;
        }
        fault("raw has no end, expected '{% endraw %}'");
    }

    void take_token(size_t& open) {
        const char c = text_[at_];
        if (c == '"' || c == '\'') return take_string(c);
        if (is_ascii_digit(c)) return take_number();
        if (begins_name(c)) {
            size_t end = at_;
            const auto goes_on = [&] { return begins_name(text_[end]) || is_ascii_digit(text_[end]); };
            while (end < text_.size() && goes_on() && white_at(text_, end) == 0) end += 1;
            add(TokenKind::kName, text_.substr(at_, end - at_));
            at_ = end;
            return;
        }
        static constexpr std::array<std::string_view, 28> kOperators = {
            "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">",
            "=",  "(",  ")",  "[",  "]",  "{",  "}", ".", ",", ":", "|", ";", "!", "&"};
        for (const std::string_view op : kOperators) {
            if (!is_at(op) || op == "!" || op == "&") continue;
            if (op == "(" || op == "[" || op == "{") open += 1;
            if (op == ")" || op == "]" || op == "}") {
                if (open == 0) fault("unexpected '" + std::string(op) + "'");
                open -= 1;
            }
            add(TokenKind::kOperator, std::string(op));
            at_ += op.size();
            return;
        }
        fault("unexpected character '" + text_.substr(at_, 1) + "'");
    }

    bool take_prefixed_number() { // 0x1F, 0o17, 0b11
        const char kind = text_[at_] == '0' && at_ + 1 < text_.size() ? static_cast<char>(text_[at_ + 1] | 0x20) : ' ';
        if (kind != 'x' && kind != 'o' && kind != 'b') return false;
        size_t end = at_ + 2;
        while (end < text_.size() && (begins_name(text_[end]) || is_ascii_digit(text_[end]))) end += 1;
        const auto value = whole_number_in(std::string_view(text_).substr(at_, end - at_), 0);
        if (!value) fault("'" + text_.substr(at_, std::min<size_t>(end - at_, 40)) + "' is not a number, or too large");
        add(TokenKind::kInteger, std::to_string(*value));
        at_ = end;
        return true;
    }

    void take_number() {
        if (take_prefixed_number()) return;
        size_t end = at_;
        const auto digits = [&] {
            while (end < text_.size() && (is_ascii_digit(text_[end]) || text_[end] == '_')) end += 1;
        };
        digits();
        bool whole = true;
        if (end + 1 < text_.size() && text_[end] == '.' && is_ascii_digit(text_[end + 1])) {
            whole = false;
            end += 1;
            digits();
        }
        if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            size_t exponent = end + 1;
            if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) exponent += 1;
            if (exponent < text_.size() && is_ascii_digit(text_[exponent])) {
                whole = false;
                end = exponent;
                digits();
            }
        }
        std::string text = text_.substr(at_, end - at_);
        std::erase(text, '_');
        add(whole ? TokenKind::kInteger : TokenKind::kFloat, std::move(text));
        at_ = end;
    }

    uint32_t hexadecimal(size_t digits) { // after the letter of an escape
        uint32_t out = 0;
        for (size_t i = 0; i < digits; ++i) {
            const uint32_t value = at_ < text_.size() ? hex_digit(static_cast<unsigned char>(text_[at_])) : 16;
            if (value > 15) fault("an escape in a string lacks digits");
            out = out << 4 | value;
            at_ += 1;
        }
        return out;
    }
    void append_code(std::string& out, uint32_t code) const {
        if (!is_character(code)) fault("an escape in a string is not a character");
        out += character_of(code);
    }
    uint32_t octal() { // one to three digits
        uint32_t out = 0;
        for (int i = 0; i < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i)
            out = out << 3 | static_cast<uint32_t>(text_[at_++] - '0');
        return out;
    }

    void take_string(char quote) {
        const uint32_t begin = line_;
        std::string out;
        at_ += 1;
        while (at_ < text_.size() && text_[at_] != quote) {
            char c = text_[at_++];
            if (c == '\n') line_ += 1;
            if (c != '\\' || at_ == text_.size()) {
                out += c;
                continue;
            }
            c = text_[at_++];
            constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
            if (const size_t known = kLetters.find(c); known != kLetters.npos) out += kMeanings[known];
            else if (c == 'x') append_code(out, hexadecimal(2));
            else if (c == 'u') append_code(out, hexadecimal(4));
            else if (c == 'U') append_code(out, hexadecimal(8));
            else if (c >= '0' && c <= '7') at_ -= 1, append_code(out, octal());
            else if (c == '\n') line_ += 1; // joined lines
            else (out += '\\') += c;
        }
        if (at_ == text_.size()) throw TemplateError{"a string has no end", begin};
        at_ += 1;
        out_.push_back({TokenKind::kString, std::move(out), begin});
    }

    std::string text_;
    size_t at_ = 0;
    uint32_t line_ = 1;
    bool at_line_start_ = true; // the text that follows begins a line
    std::vector<Token> out_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

}  // namespace patchbay::text::chat
