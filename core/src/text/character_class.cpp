#include "text/character_class.hpp"

#include <unicode/uniset.h>

#include <cctype>
#include <cstdio>
#include <utility>

#include "base/refusals.hpp"
#include "text/characters.hpp"

namespace patchbay::text {
namespace {

constexpr int kMaxDepth = 32;

Result<icu::UnicodeSet> icu_set(const std::string& pattern) {
    UErrorCode error = U_ZERO_ERROR;
    icu::UnicodeSet out(icu::UnicodeString::fromUTF8(pattern), error);
    if (U_FAILURE(error)) return unsupported("unknown property '" + pattern + "'");
    return out;
}

// After the backslash. Nothing: it stands for no single character.
std::optional<char32_t> escaped_character(std::string_view text, size_t& at) {
    const auto digits = [&](size_t max) {
        char32_t value = 0;
        size_t count = 0;
        for (; count < max && at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at])); ++count, ++at)
            value = value * 16 + static_cast<char32_t>(std::stoi(std::string(1, text[at]), nullptr, 16));
        return count > 0 && value <= 0x10FFFF ? std::optional(value) : std::nullopt;
    };
    constexpr std::pair<char, char> kControls[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'f', '\f'},
                                                   {'v', '\v'}, {'a', '\a'}, {'e', '\x1B'}};
    for (const auto& [letter, control] : kControls)
        if (text[at] == letter) return ++at, static_cast<char32_t>(control);
    if (text[at] == 'u') return ++at, digits(4);
    if (text[at] == 'x' && text.substr(at + 1).starts_with('{')) {
        at += 2;
        const auto value = digits(8);
        if (at >= text.size() || text[at] != '}') return std::nullopt;
        return ++at, value;
    }
    if (text[at] == 'x') return ++at, digits(2);
    if (std::isalnum(static_cast<unsigned char>(text[at]))) return std::nullopt;
    return next_character(text, at);
}

class ClassReader {
  public:
    explicit ClassReader(std::string_view text) : text_(text) {}

    Result<icu::UnicodeSet> read(int depth = 0) { // at_ on '['
        if (depth == kMaxDepth) return unsupported("classes nested more than " + std::to_string(kMaxDepth) + " deep");
        ++at_;
        const bool negated = take("^");
        icu::UnicodeSet whole(0, 0x10FFFF), part;
        for (bool first = true;; first = false) {
            if (at_ >= text_.size()) return unsupported("a class that does not close");
            if (!first && take("]")) break;
            if (take("&&")) {
                whole.retainAll(part);
                part.clear();
                if (at_ < text_.size() && text_[at_] == ']') return unsupported("an intersection && with nothing");
                continue;
            }
            PB_CHECK(read_item(part, depth));
        }
        whole.retainAll(part);
        if (negated) whole.complement();
        return whole;
    }

  private:
    bool take(std::string_view what) {
        if (!text_.substr(at_).starts_with(what)) return false;
        at_ += what.size();
        return true;
    }

    Result<> read_item(icu::UnicodeSet& out, int depth) {
        if (text_.substr(at_).starts_with("[:")) return read_posix(out);
        if (text_[at_] == '[') {
            PB_TRY(const icu::UnicodeSet inner, read(depth + 1));
            out.addAll(inner);
            return {};
        }
        if (text_[at_] == '\\') {
            PB_TRY(const auto set, read_set_escape());
            if (set) {
                out.addAll(*set);
                return {};
            }
        }
        PB_TRY(const char32_t low, read_character());
        const std::string_view rest = text_.substr(at_);
        const bool range = rest.size() > 1 && rest[0] == '-' && rest[1] != ']' && rest[1] != '[';
        if (!range) {
            out.add(static_cast<UChar32>(low));
            return {};
        }
        ++at_;
        PB_TRY(const char32_t high, read_character());
        if (high < low) return unsupported("a range that ends before it begins");
        out.add(static_cast<UChar32>(low), static_cast<UChar32>(high));
        return {};
    }

    Result<> read_posix(icu::UnicodeSet& out) {
        const size_t close = text_.find(":]", at_);
        std::string_view name = close == text_.npos ? "" : text_.substr(at_ + 2, close - at_ - 2);
        const bool negated = name.starts_with('^');
        if (negated) name.remove_prefix(1);
        const std::string_view set = posix_class(name);
        if (set.empty()) return unsupported("the class [:" + std::string(name) + ":]");
        PB_TRY(icu::UnicodeSet known, icu_set(std::string(set)));
        if (negated) known.complement();
        out.addAll(known);
        at_ = close + 2;
        return {};
    }

    // \d, \s, \w, \p{…} and their opposites; no set: an escape of another kind.
    Result<std::optional<icu::UnicodeSet>> read_set_escape() {
        using Set = std::optional<icu::UnicodeSet>;
        const char kind = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(kind)));
        if (lower != 'd' && lower != 's' && lower != 'w' && lower != 'p') return Set();
        at_ += 2;
        bool negated = kind != lower;
        std::string pattern = std::string(posix_class(lower == 'd' ? "digit" : lower == 's' ? "space" : "word"));
        if (lower == 'p') {
            const size_t close = text_.find('}', at_);
            if (!text_.substr(at_).starts_with('{') || close == text_.npos) return unsupported("\\p without braces");
            std::string_view name = text_.substr(at_ + 1, close - at_ - 1);
            if (name.starts_with('^')) {
                negated = !negated;
                name.remove_prefix(1);
            }
            const std::string_view posix = posix_class(name);
            pattern = posix.empty() ? "[\\p{" + std::string(name) + "}]" : std::string(posix);
            at_ = close + 1;
        }
        PB_TRY(icu::UnicodeSet set, icu_set(pattern));
        if (negated) set.complement();
        return Set(std::move(set));
    }

    Result<char32_t> read_character() {
        if (at_ >= text_.size()) return unsupported("a class that does not close");
        if (text_[at_] != '\\') return next_character(text_, at_);
        const size_t escape = at_++;
        const auto value = at_ < text_.size() ? escaped_character(text_, at_) : std::nullopt;
        if (!value) return unsupported(std::string(text_.substr(escape, 2)) + " in a class with classes inside");
        return *value;
    }

    std::string_view text_;
    size_t at_ = 0;
};

}  // namespace

std::string_view posix_class(std::string_view name) {
    // Source: Oniguruma's description of its syntax, "POSIX bracket, Unicode case".
    constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
        {"alnum", "[\\p{Alphabetic}\\p{Nd}]"},
        {"alpha", "[\\p{Alphabetic}]"},
        {"ascii", "[\\x{0}-\\x{7F}]"},
        {"blank", "[\\p{Zs}\\x{9}]"},
        {"cntrl", "[\\p{Cc}]"},
        {"digit", "[\\p{Nd}]"},
        {"graph", "[^\\p{White_Space}\\p{Cc}\\p{Cn}\\p{Cs}]"},
        {"lower", "[\\p{Lowercase}]"},
        {"print", "[[^\\p{White_Space}\\p{Cc}\\p{Cn}\\p{Cs}]\\p{Zs}]"},
        {"punct", "[\\p{P}\\p{S}]"},
        {"space", "[\\p{White_Space}]"},
        {"upper", "[\\p{Uppercase}]"},
        {"word", "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]"},
        {"xdigit", "[0-9A-Fa-f]"},
    };
    for (const auto& [known, set] : kClasses)
        if (name == known) return set;
    return {};
}

std::optional<size_t> end_of_nested_class(std::string_view pattern, size_t open) {
    bool nested = false;
    int depth = 0;
    bool first = false; // a bracket that closes is itself there
    for (size_t i = open; i < pattern.size(); ++i) {
        const char c = pattern[i];
        if (c == '\\') {
            ++i;
        } else if (c == '[') {
            nested = nested || depth > 0;
            ++depth;
            first = true;
            if (pattern.substr(i + 1).starts_with('^')) ++i;
            continue;
        } else if (c == ']' && !first && --depth == 0) {
            return nested ? std::optional(i) : std::nullopt;
        } else if (c == '&' && pattern.substr(i).starts_with("&&")) {
            nested = true;
        }
        first = false;
    }
    return std::nullopt;
}

Result<std::string> class_as_ranges(std::string_view text) {
    PB_TRY(icu::UnicodeSet set, ClassReader(text).read());
    set.remove(0xD800, 0xDFFF); // no character of UTF-8
    if (set.isEmpty()) return std::string("[^\\x{0}-\\x{10FFFF}]");
    std::string out = "[";
    char range[40];
    for (int32_t i = 0; i < set.getRangeCount(); ++i) {
        std::snprintf(range, sizeof range, "\\x{%X}-\\x{%X}", static_cast<unsigned>(set.getRangeStart(i)),
                      static_cast<unsigned>(set.getRangeEnd(i)));
        out += range;
    }
    return out + "]";
}

}  // namespace patchbay::text
