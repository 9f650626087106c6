// The text of a grammar of Lark's, as the words that it is made of: names, strings, patterns, and what stands between
// them. Used by the parser in lark.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "grammar/utf8_reader.hpp"

namespace patchbay::grammar {

constexpr bool is_name_character(uint32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class LarkText : public Utf8Reader {
  public:
    static Result<LarkText> of(std::string_view text);

    void skip_spaces(); // and comments, to the end of the line
    void skip_lines();  // likewise, and over ends of lines

    std::string name();              // empty: none begins here
    Result<std::u32string> quoted(); // after the quote: what the string stands for, past its closing quote
    Result<std::string> slashed();   // after the slash: a pattern as it is written, past its closing slash

    // With where the text is read.
    Failure refuse(const Failure& why) const;
    Failure refuse(const std::string& what) const; // it is wrong

  private:
    explicit LarkText(Utf8Reader text) : Utf8Reader(std::move(text)) {}
};

}  // namespace patchbay::grammar
