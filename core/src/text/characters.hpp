// Unicode characters of valid UTF-8 and the classes that tokenizer files name, by ICU.
#pragma once
#include <string>
#include <string_view>

namespace patchbay::text {

inline constexpr std::string_view kSpace = "\u2581"; // as SentencePiece writes a space

char32_t next_character(std::string_view text, size_t& at);   // at < size; moves past it
char32_t character_before(std::string_view text, size_t& at); // at > 0; moves to its beginning
size_t character_length(char lead);                           // in bytes, by the lead byte
void append_character(std::string&, char32_t);

bool is_white_space(char32_t); // White_Space
bool is_word(char32_t);        // \w: Alphabetic, Mark, Decimal_Number, Connector_Punctuation, Join_Control
bool is_number(char32_t);      // Nd, Nl, No
bool is_punctuation(char32_t); // P of Unicode 8, and ASCII's symbols
bool is_mark(char32_t);        // M
bool is_nonspacing_mark(char32_t); // Mn of Unicode 8
bool is_control(char32_t);         // Cc, Cf, Co of Unicode 8
bool is_bert_chinese(char32_t);    // the ideographs that BERT takes as words
bool is_script_name(const std::string&); // "Han", "hani": a value of the property Script
void append_lowercase(std::string&, char32_t); // regardless of its neighbours

}  // namespace patchbay::text
