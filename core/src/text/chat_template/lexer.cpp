#include "text/chat_template/lexer.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "text/chat_template/value.hpp"

namespace patchbay::text::chat {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

void append_utf8(std::string& out, uint32_t code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0 | code >> 6);
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        out += static_cast<char>(0xE0 | code >> 12);
        out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
        out += static_cast<char>(0xF0 | code >> 18);
        out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
        out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    }
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
            while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
        } else if (end < text_.size() && sign != '+' && text_[end + 1] != '{') {
            const size_t line = text.rfind('\n');
            const size_t from = line == text.npos ? 0 : line + 1;
            const bool whole_line = line != text.npos || at_line_start_;
            const auto rest = text.substr(from);
            if (whole_line && std::all_of(rest.begin(), rest.end(), is_space)) text = text.substr(0, from);
        }
        if (!text.empty()) add(TokenKind::kText, std::string(text));
        move_to(end);
    }

    // At the end of a tag: what stands after it is taken as its sign says.
    void end_tag(char sign, TokenKind kind) {
        const size_t from = at_;
        if (sign == '-') {
            size_t to = at_;
            while (to < text_.size() && is_space(text_[to])) to += 1;
            move_to(to);
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
            size_t next = at_;
            while (next < text_.size() && is_space(text_[next])) next += 1;
            move_to(next);
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
            while (i < text_.size() && is_space(text_[i])) i += 1;
            if (text_.compare(i, word.size(), word) != 0) return 0;
            i += word.size();
            while (i < text_.size() && is_space(text_[i])) i += 1;
            if (i < text_.size() && (text_[i] == '-' || text_[i] == '+')) i += 1;
            return text_.compare(i, 2, "%}") == 0 ? i + 2 : 0;
        };
        const size_t inside = word_at(at_, "raw");
        if (inside == 0) return false;
        const char sign = text_[inside - 3];
        move_to(inside);
        end_tag(sign, TokenKind::kBlockEnd);
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
        if (is_digit(c)) return take_number();
        if (begins_name(c)) {
            size_t end = at_;
            while (end < text_.size() && (begins_name(text_[end]) || is_digit(text_[end]))) end += 1;
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

    void take_number() {
        size_t end = at_;
        const auto digits = [&] {
            while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '_')) end += 1;
        };
        digits();
        bool whole = true;
        if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
            whole = false;
            end += 1;
            digits();
        }
        if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            size_t exponent = end + 1;
            if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) exponent += 1;
            if (exponent < text_.size() && is_digit(text_[exponent])) {
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
            const char c = at_ < text_.size() ? text_[at_] : ' ';
            const int value = is_digit(c)            ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (value < 0) fault("an escape in a string lacks digits");
            out = out << 4 | static_cast<uint32_t>(value);
            at_ += 1;
        }
        if (out > 0x10FFFF) fault("an escape in a string is no character");
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
            constexpr std::string_view kLetters = "abfnrtv0\\'\"", kMeanings("\a\b\f\n\r\t\v\0\\'\"", 11);
            if (const size_t known = kLetters.find(c); known != kLetters.npos) out += kMeanings[known];
            else if (c == 'x') append_utf8(out, hexadecimal(2));
            else if (c == 'u') append_utf8(out, hexadecimal(4));
            else if (c == 'U') append_utf8(out, hexadecimal(8));
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
