// Python's str, over UTF-8: places and lengths are in code points. Used by the built-ins.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::text::chat {

size_t code_points(std::string_view);
std::vector<std::string_view> characters_of(std::string_view);
std::string upper(const std::string&);
std::string lower(const std::string&);
std::string title(const std::string&);      // str.title()
std::string capitalize(const std::string&);
enum class Sides { kBoth, kLeft, kRight };
std::string_view strip(std::string_view, Sides);                           // white space
std::string_view strip(std::string_view, std::string_view set, Sides);     // characters of the set
std::vector<std::string> split_words(std::string_view, int64_t max_splits); // by white space; below 0: no limit
std::string replace(std::string_view, std::string_view from, std::string_view to, int64_t count);

}  // namespace patchbay::text::chat
