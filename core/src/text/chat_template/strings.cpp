#include "text/chat_template/strings.hpp"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>

namespace patchbay::text::chat {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
bool is_ascii(std::string_view s) {
    return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

UChar32 code_of(std::string_view character) {
    const auto first = static_cast<unsigned char>(character[0]);
    if (first < 0x80) return first;
    UChar32 code = first & (0x7F >> std::min<size_t>(character.size(), 4));
    for (const char c : character.substr(1)) code = code << 6 | (c & 0x3F);
    return code;
}

bool is_white(std::string_view character) {
    const UChar32 code = code_of(character);
    return u_isUWhiteSpace(code) || (code >= 0x1C && code <= 0x1F);
}

template <class Change>
std::string changed(const std::string& s, Change change) {
    icu::UnicodeString text = icu::UnicodeString::fromUTF8(s);
    change(text);
    std::string out;
    text.toUTF8String(out);
    return out;
}

size_t last_character(std::string_view s) { // where it begins
    size_t at = s.size() - 1;
    while (at > 0 && continues(s[at])) at -= 1;
    return at;
}

size_t first_character(std::string_view s) { // its bytes
    size_t n = 1;
    while (n < s.size() && continues(s[n])) n += 1;
    return n;
}

template <class Is>
std::string_view strip_if(std::string_view s, Sides sides, Is is) {
    while (sides != Sides::kRight && !s.empty()) {
        const size_t n = first_character(s);
        if (!is(s.substr(0, n))) break;
        s.remove_prefix(n);
    }
    while (sides != Sides::kLeft && !s.empty()) {
        const size_t at = last_character(s);
        if (!is(s.substr(at))) break;
        s = s.substr(0, at);
    }
    return s;
}

}  // namespace

size_t code_points(std::string_view s) {
    return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return !continues(c); }));
}

std::vector<std::string_view> characters_of(std::string_view s) {
    std::vector<std::string_view> out;
    while (!s.empty()) {
        const size_t n = first_character(s);
        out.push_back(s.substr(0, n));
        s.remove_prefix(n);
    }
    return out;
}

std::string upper(const std::string& s) {
    if (!is_ascii(s)) return changed(s, [](icu::UnicodeString& t) { t.toUpper(icu::Locale::getRoot()); });
    std::string out = s;
    for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    return out;
}

std::string lower(const std::string& s) {
    if (!is_ascii(s)) return changed(s, [](icu::UnicodeString& t) { t.toLower(icu::Locale::getRoot()); });
    std::string out = s;
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return out;
}

std::string title(const std::string& s) {
    std::string out;
    bool inside = false; // of a word
    for (const std::string_view c : characters_of(s)) {
        out += inside ? lower(std::string(c)) : upper(std::string(c));
        inside = u_isalpha(code_of(c));
    }
    return out;
}

std::string capitalize(const std::string& s) {
    if (s.empty()) return s;
    const size_t n = first_character(s);
    return upper(s.substr(0, n)) + lower(s.substr(n));
}

std::string_view strip(std::string_view s, Sides sides) { return strip_if(s, sides, is_white); }

std::string_view strip(std::string_view s, std::string_view set, Sides sides) {
    const auto characters = characters_of(set);
    return strip_if(s, sides,
                    [&](std::string_view c) { return std::ranges::find(characters, c) != characters.end(); });
}

std::vector<std::string> split_words(std::string_view s, int64_t max_splits) {
    std::vector<std::string> out;
    s = strip(s, Sides::kLeft);
    while (!s.empty()) {
        if (max_splits >= 0 && static_cast<int64_t>(out.size()) == max_splits) {
            out.emplace_back(strip(s, Sides::kRight));
            break;
        }
        size_t end = 0;
        while (end < s.size()) {
            const size_t n = first_character(s.substr(end));
            if (is_white(s.substr(end, n))) break;
            end += n;
        }
        out.emplace_back(s.substr(0, end));
        s = strip(s.substr(end), Sides::kLeft);
    }
    return out;
}

std::string replace(std::string_view s, std::string_view from, std::string_view to, int64_t count) {
    std::string out;
    if (from.empty()) { // between all characters
        for (const std::string_view c : characters_of(s)) {
            if (count != 0) out += to, count -= 1;
            out += c;
        }
        if (count != 0) out += to;
        return out;
    }
    size_t at = 0;
    while (count != 0) {
        const size_t found = s.find(from, at);
        if (found == s.npos) break;
        out += s.substr(at, found - at);
        out += to;
        at = found + from.size();
        count -= 1;
    }
    return out += s.substr(at);
}

}  // namespace patchbay::text::chat
