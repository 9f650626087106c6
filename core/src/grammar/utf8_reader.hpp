// Reads a text character by character, for the parsers of regular expressions and grammars. The text is checked to be
// UTF-8 once; positions in messages are in characters.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay::grammar {

inline constexpr uint32_t kMaxNesting = 100; // of a regular expression or grammar, and quantifiers in a row

class Utf8Reader {
  public:
    static Result<Utf8Reader> of(std::string_view text, size_t max_bytes, const char* what);

    bool at_end() const { return at_ == text_.size(); }
    uint32_t peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0xFFFFFFFF; }
    uint32_t next() { return text_[at_++]; }
    bool take(char32_t c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    bool take(std::u32string_view s) {
        if (std::u32string_view(text_).substr(at_, s.size()) != s) return false;
        at_ += s.size();
        return true;
    }
    size_t position() const { return at_; }
    void go_to(size_t position) { at_ = position; }
    std::string shown(size_t from) const; // the text from there up to here
    std::string where() const;            // "at line 3, column 7"

    std::optional<uint32_t> hex(size_t digits);    // exactly this many digits
    std::optional<uint32_t> number(uint32_t max_value); // decimal; none: no digit, or more than that

  private:
    std::u32string text_;
    size_t at_ = 0;
};

}  // namespace patchbay::grammar
