// Python's str, over UTF-8: places and lengths are in code points. Used by the built-ins.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::text::chat {

size_t code_points(std::string_view);
std::vector<std::string_view> characters_of(std::string_view);
// The character at a place, which is there.
std::string_view character_at(std::string_view, size_t place);
size_t byte_of(std::string_view, size_t place); // where that character begins; the size, where there is none
size_t white_at(std::string_view, size_t byte); // bytes of the white space character there; 0: it is none
// Where a text is found from a byte on, in time that grows as the texts do; npos: nowhere.
size_t find_text(std::string_view in, std::string_view what, size_t from = 0);
std::string upper(const std::string&);
std::string lower(const std::string&);
std::string title(const std::string&);       // str.title()
std::string jinja_title(const std::string&); // Jinja's filter, for which words begin after white space and -([{<
std::string capitalize(const std::string&);
std::string case_folded(const std::string&);
enum class Sides { kBoth, kLeft, kRight };
std::string_view strip(std::string_view, Sides);                           // white space
std::string_view strip(std::string_view, std::string_view set, Sides);     // characters of the set
std::vector<std::string> split_words(std::string_view, int64_t max_splits); // by white space; below 0: no limit
std::vector<std::string> split_last_words(std::string_view, int64_t max_splits); // from the end
std::vector<std::string> split_lines(std::string_view, bool keep_ends);
std::string replace(std::string_view, std::string_view from, std::string_view to, int64_t count);
size_t words_in(std::string_view); // \w+

// str.isalpha() and the others of this kind.
bool is_alphabetic(std::string_view);
bool is_decimal(std::string_view);
bool is_digit(std::string_view);
bool is_numeric(std::string_view);
bool is_alphanumeric(std::string_view);
bool is_upper(std::string_view);
bool is_lower(std::string_view);
bool is_ascii_text(std::string_view); // also an empty one
bool is_printable(std::string_view character); // as Python's repr() shows it
uint32_t code_point_of(std::string_view character);
std::string character_of(uint32_t code_point);

}  // namespace patchbay::text::chat
