#include "text/chat_template/strings.hpp"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstring>

#include "base/utf8.hpp"
#include "text/characters.hpp"

namespace patchbay::text::chat {
namespace {

bool is_ascii(std::string_view s) {
    return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

UChar32 code_of(std::string_view character) { return static_cast<UChar32>(code_point(character)); }

bool is_white(std::string_view character) {
    const UChar32 code = code_of(character);
    return u_isUWhiteSpace(code) || (code >= 0x1C && code <= 0x1F);
}

bool is_small(UChar32 c) { return u_isULowercase(c); }
bool is_large(UChar32 c) { return u_isUUppercase(c) || u_charType(c) == U_TITLECASE_LETTER; }
bool has_numeric_type(UChar32 c, int32_t least) {
    const int32_t type = u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE); // decimal, digit, numeric: 1, 2, 3
    return type != U_NT_NONE && type <= least;
}
bool alphabetic(UChar32 c) { return (U_GET_GC_MASK(c) & U_GC_L_MASK) != 0; }
bool alphanumeric(UChar32 c) { return alphabetic(c) || has_numeric_type(c, U_NT_NUMERIC); }

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
    while (at > 0 && continues_character(s[at])) at -= 1;
    return at;
}

size_t first_character(std::string_view s) { // its bytes
    size_t n = 1;
    while (n < s.size() && continues_character(s[n])) n += 1;
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

// Whether there are characters, and all are so.
template <class Is>
bool all_are(std::string_view s, Is is) {
    if (s.empty()) return false;
    for (size_t n = 0; !s.empty(); s.remove_prefix(n)) {
        n = first_character(s);
        if (!is(code_of(s.substr(0, n)))) return false;
    }
    return true;
}

// Whether a cased character is there, and none of the other case.
template <class Is, class IsOther>
bool has_case(std::string_view s, Is is, IsOther other) {
    bool found = false;
    for (size_t n = 0; !s.empty(); s.remove_prefix(n)) {
        n = first_character(s);
        const UChar32 c = code_of(s.substr(0, n));
        if (other(c)) return false;
        found = found || is(c);
    }
    return found;
}

bool ends_line(UChar32 c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

size_t code_points(std::string_view s) { return count_characters(s); }

std::vector<std::string_view> characters_of(std::string_view s) {
    std::vector<std::string_view> out;
    while (!s.empty()) {
        const size_t n = first_character(s);
        out.push_back(s.substr(0, n));
        s.remove_prefix(n);
    }
    return out;
}

size_t byte_of(std::string_view s, size_t place) {
    constexpr size_t kMany = 256; // bytes that are counted at once
    size_t at = 0;
    for (; s.size() - at > kMany; at += kMany) {
        const size_t n = code_points(s.substr(at, kMany));
        if (n > place) break;
        place -= n;
    }
    for (; at < s.size(); ++at)
        if (!continues_character(s[at]) && place-- == 0) break;
    return at;
}

std::string_view character_at(std::string_view s, size_t place) {
    s.remove_prefix(byte_of(s, place));
    return s.substr(0, first_character(s));
}

size_t white_at(std::string_view s, size_t byte) {
    if (byte >= s.size()) return 0;
    s.remove_prefix(byte);
    const size_t n = first_character(s);
    return is_white(s.substr(0, n)) ? n : 0;
}

size_t find_text(std::string_view in, std::string_view what, size_t from) {
    if (from > in.size()) return in.npos;
    // Unlike find(), it does not compare all of a long text at each place.
    const void* const found = memmem(in.data() + from, in.size() - from, what.data(), what.size());
    return found ? static_cast<size_t>(static_cast<const char*>(found) - in.data()) : in.npos;
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

namespace {

// As it begins a word: one that is several in upper case goes on in lower case.
std::string titled(std::string_view character) {
    const UChar32 code = code_of(character);
    if (u_totitle(code) != code) return character_of(static_cast<uint32_t>(u_totitle(code)));
    const std::string large = upper(std::string(character));
    const size_t n = first_character(large);
    return large.substr(0, n) + lower(large.substr(n));
}

}  // namespace

std::string title(const std::string& s) {
    std::string out;
    bool inside = false; // of a word
    for (const std::string_view c : characters_of(s)) {
        out += inside ? lower(std::string(c)) : titled(c);
        inside = is_small(code_of(c)) || is_large(code_of(c));
    }
    return out;
}

std::string jinja_title(const std::string& s) {
    std::string out;
    const std::string_view text = s;
    for (size_t at = 0; at < text.size();) {
        const auto separates = [&](size_t byte) {
            return text.substr(byte, 1).find_first_of("-({[<") == 0 ? size_t{1} : white_at(text, byte);
        };
        size_t end = at;
        while (const size_t n = separates(end)) end += n;
        out += text.substr(at, end - at);
        at = end;
        while (end < text.size() && separates(end) == 0) end += first_character(text.substr(end));
        if (end > at) {
            const size_t n = first_character(text.substr(at));
            out += upper(std::string(text.substr(at, n))) + lower(std::string(text.substr(at + n, end - at - n)));
        }
        at = end;
    }
    return out;
}

std::string case_folded(const std::string& s) {
    return changed(s, [](icu::UnicodeString& t) { t.foldCase(); });
}

std::string capitalize(const std::string& s) {
    if (s.empty()) return s;
    const size_t n = first_character(s);
    return titled(s.substr(0, n)) + lower(s.substr(n));
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
            out.emplace_back(s); // with the white space at its end, as Python has it
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

std::vector<std::string> split_last_words(std::string_view s, int64_t max_splits) {
    std::vector<std::string> out;
    s = strip(s, Sides::kRight);
    while (!s.empty()) {
        if (static_cast<int64_t>(out.size()) == max_splits) {
            out.emplace_back(s);
            break;
        }
        size_t begin = s.size();
        while (begin > 0) {
            const size_t last = last_character(s.substr(0, begin));
            if (is_white(s.substr(last, begin - last))) break;
            begin = last;
        }
        out.emplace_back(s.substr(begin));
        s = strip(s.substr(0, begin), Sides::kRight);
    }
    std::ranges::reverse(out);
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
        const size_t found = find_text(s, from, at);
        if (found == s.npos) break;
        out += s.substr(at, found - at);
        out += to;
        at = found + from.size();
        count -= 1;
    }
    return out += s.substr(at);
}

std::vector<std::string> split_lines(std::string_view s, bool keep_ends) {
    std::vector<std::string> out;
    size_t begin = 0;
    for (size_t at = 0; at < s.size();) {
        const size_t n = first_character(s.substr(at));
        const size_t end = at;
        at += n;
        if (!ends_line(code_of(s.substr(end, n)))) continue;
        if (s[end] == '\r' && at < s.size() && s[at] == '\n') at += 1;
        out.emplace_back(s.substr(begin, (keep_ends ? at : end) - begin));
        begin = at;
    }
    if (begin < s.size()) out.emplace_back(s.substr(begin));
    return out;
}

size_t words_in(std::string_view s) {
    size_t count = 0;
    bool inside = false;
    for (size_t n = 0; !s.empty(); s.remove_prefix(n)) {
        n = first_character(s);
        const UChar32 c = code_of(s.substr(0, n));
        const bool of_word = c == '_' || alphanumeric(c);
        count += of_word && !inside;
        inside = of_word;
    }
    return count;
}

bool is_alphabetic(std::string_view s) { return all_are(s, alphabetic); }
bool is_alphanumeric(std::string_view s) { return all_are(s, alphanumeric); }
bool is_decimal(std::string_view s) {
    return all_are(s, [](UChar32 c) { return has_numeric_type(c, U_NT_DECIMAL); });
}
bool is_digit(std::string_view s) {
    return all_are(s, [](UChar32 c) { return has_numeric_type(c, U_NT_DIGIT); });
}
bool is_numeric(std::string_view s) {
    return all_are(s, [](UChar32 c) { return has_numeric_type(c, U_NT_NUMERIC); });
}
bool is_upper(std::string_view s) {
    return has_case(s, u_isUUppercase, [](UChar32 c) { return is_small(c) || u_charType(c) == U_TITLECASE_LETTER; });
}
bool is_lower(std::string_view s) { return has_case(s, is_small, is_large); }

bool is_ascii_text(std::string_view s) { return is_ascii(s); }

bool is_printable(std::string_view character) {
    const UChar32 c = code_of(character);
    return c == ' ' || (U_GET_GC_MASK(c) & (U_GC_C_MASK | U_GC_Z_MASK)) == 0;
}

std::string character_of(uint32_t code_point) {
    std::string out;
    append_character(out, static_cast<char32_t>(code_point));
    return out;
}

uint32_t code_point_of(std::string_view character) { return static_cast<uint32_t>(code_of(character)); }

}  // namespace patchbay::text::chat
