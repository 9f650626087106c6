#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.hpp"

#include <pcre2.h>

#include <algorithm>
#include <new>

#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "text/character_class.hpp"
#include "text/characters.hpp"

namespace patchbay::text {
namespace {

// \w of Oniguruma, which it builds with other data inside of a class than alone: alone it has ² ³ ¹ ¼ ½ ¾ too.
constexpr const char* kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr const char* kWordAlone = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";

// The inside of \p{…}. PCRE2 reads a script's name as Script_Extensions, Oniguruma as Script.
std::string property_of(std::string_view name) {
    const size_t begin = std::min(name.find_first_not_of(" ^"), name.size());
    const std::string bare(name.substr(begin));
    return std::string(name.substr(0, begin)) + (is_script_name(bare) ? "sc:" : "") + bare;
}

// Oniguruma's pattern in PCRE2's syntax. \s is Unicode's White_Space in one and a little more in the other.
Result<std::string> translate(std::string_view pattern) {
    const auto refuse = [&](const std::string& what) {
        return unsupported("pattern '" + std::string(pattern) + "': " + what + " is not supported");
    };
    std::string out;
    bool in_class = false;
    for (size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        if (c == '\\' && i + 1 < pattern.size()) {
            const char escaped = pattern[++i];
            if (std::string_view("hHGKkgXyYOR").find(escaped) != std::string_view::npos)
                return refuse(std::string("\\") + escaped);
            if ((escaped == 'b' || escaped == 'B') && in_class) return refuse("\\b in a class");
            if (escaped == 'b' || escaped == 'B') {
                const std::string word = std::string("[") + kWord + kWordAlone + "]";
                const std::string border = "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))";
                out += escaped == 'b' ? border : "(?!" + border + ")";
            } else if (escaped == 's')
                out += "\\p{WSpace}";
            else if (escaped == 'S')
                out += "\\P{WSpace}";
            else if (escaped == 'w' && in_class)
                out += kWord;
            else if (escaped == 'W' && in_class)
                return refuse("\\W in a class");
            else if (escaped == 'w' || escaped == 'W')
                out += std::string(escaped == 'w' ? "[" : "[^") + kWord + kWordAlone + "]";
            else
                out += {c, escaped};
            const bool braces = std::string_view("pPxou").find(escaped) != std::string_view::npos &&
                                pattern.substr(i + 1).starts_with('{');
            if (braces) { // \p{L}: not a repeat count
                const size_t close = pattern.find('}', i);
                if (close == pattern.npos) return refuse("a brace that does not close");
                const std::string_view inside = pattern.substr(i + 2, close - i - 2);
                const bool property = escaped == 'p' || escaped == 'P';
                out += "{" + (property ? property_of(inside) : std::string(inside)) + "}";
                i = close;
            }
            continue;
        }
        if (!in_class && pattern.substr(i).starts_with("(*")) return refuse("a verb (*…)");
        if (!in_class && pattern.substr(i).starts_with("(?")) { // m means another thing there
            const size_t end = pattern.find_first_not_of("imsx-", i + 2);
            if (pattern.substr(i + 2, end - i - 2).find_first_of("msx") != std::string_view::npos)
                return refuse("an inline flag other than (?i)");
            if (pattern.substr(i).starts_with("(?C")) return refuse("a callout (?C…)");
        }
        if (!in_class && c == '[') {
            if (const auto end = end_of_nested_class(pattern, i)) {
                auto ranges = class_as_ranges(pattern.substr(i, *end + 1 - i));
                if (!ranges) return refuse(ranges.error());
                out += *ranges;
                i = *end;
                continue;
            }
        }
        out += c;
        if (in_class) {
            if (c == ']')
                in_class = false;
            else if (c == '[' || pattern.substr(i).starts_with("&&"))
                return refuse("a class that does not close"); // or it would be one with classes inside
        } else if (c == '[') {
            in_class = true;
            for (const char literal : {'^', ']'}) // "[]" and "[^]" open with a literal bracket
                if (pattern.substr(i + 1).starts_with(literal)) out += pattern[++i];
        } else if (c == '{') {
            const size_t close = pattern.find_first_not_of("0123456789,", i + 1);
            if (close != pattern.npos && pattern[close] == '}' && pattern.substr(close + 1).starts_with('+'))
                return refuse("a possessive {n,m}+"); // a repeat of the repeat there
        }
    }
    return out;
}

}  // namespace

void Regex::FreeCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }
void Regex::FreeMatch::operator()(pcre2_real_match_data_8* data) const { pcre2_match_data_free(data); }
void Regex::FreeContext::operator()(pcre2_real_match_context_8* context) const { pcre2_match_context_free(context); }

Regex::Scratch Regex::scratch() const {
    Scratch out{
        std::unique_ptr<pcre2_real_match_data_8, FreeMatch>(pcre2_match_data_create_from_pattern(code_.get(), nullptr)),
        std::unique_ptr<pcre2_real_match_context_8, FreeContext>(pcre2_match_context_create(nullptr))};
    if (!out.data || !out.limits) throw std::bad_alloc();
    pcre2_set_heap_limit(out.limits.get(), 256 * 1024); // KiB
    return out;
}

Result<Regex> Regex::compile(const std::string& pattern) {
    constexpr size_t kMaxPattern = 16384;
    if (pattern.size() > kMaxPattern)
        return invalid("a pattern of " + std::to_string(pattern.size()) + " bytes is longer than " +
                       std::to_string(kMaxPattern));
    PB_TRY(const std::string source, translate(pattern));
    // Ruby's ^ and $ are of lines.
    constexpr uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    Regex out;
    // The second code is metered, and tried at one place only.
    for (const auto& [code, more] : {std::pair{&out.code_, 0u}, {&out.metered_, PCRE2_AUTO_CALLOUT | PCRE2_ANCHORED}}) {
        int error = 0;
        PCRE2_SIZE at = 0;
        code->reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), options | more, &error,
                                  &at, nullptr));
        if (!*code) {
            PCRE2_UCHAR text[160] = {};
            pcre2_get_error_message(error, text, sizeof text);
            return invalid("pattern '" + pattern + "' does not compile: " + reinterpret_cast<const char*>(text) +
                           " (near character " + std::to_string(at) + ")");
        }
        pcre2_jit_compile(code->get(),
                          PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD); // where it fails, the interpreter matches
    }
    return out;
}

// What one search may cost. The first attempt sees a short window and may take few steps, which is enough for words,
// and fast. What needs more runs again with a callout before each item of the pattern, which pays for every character
// that was scanned since the one before; an empty purse ends the search. (PCRE2's own limit counts backtracks, but not
// what a repeat scans, and starts anew with each match.)
class Regex::Search {
  public:
    Search(const Regex& regex, std::string_view text, const Scratch& scratch)
        : regex_(regex), text_(text), data_(scratch.data.get()), limits_(scratch.limits.get()) {
        // A pattern that fails at the end of a long word is tried at each of its characters, which is fine a few times.
        const size_t square = text.size() < 2048 ? text.size() * text.size() : kMaxSquare;
        purse_ = kPurse + kPurseAByte * text.size() + square;
        pcre2_set_callout(
            limits_, [](pcre2_callout_block* at, void* self) { return static_cast<Search*>(self)->pay(at); }, this);
    }

    bool next(size_t from, Span& match) { // the first match that begins at or after `from`
        for (;;) {
            const size_t end = window_end(from);
            const uint32_t partial = end < text_.size() ? PCRE2_PARTIAL_HARD : 0; // no match looked past the end
            int found = run(regex_.code_.get(), end, from, partial, kSteps);
            if (found == PCRE2_ERROR_NOMATCH) {
                if (end == text_.size()) return false;
                from = end; // no match begins in the window
                continue;
            }
            if (found == PCRE2_ERROR_PARTIAL && pcre2_get_ovector_pointer(data_)[0] > from) {
                from = pcre2_get_ovector_pointer(data_)[0]; // a match from there may go on past the window
                continue;
            }
            if (found < 0) {
                last_paid_ = from;
                found = run(regex_.metered_.get(), text_.size(), from, 0, kMaxSteps);
                if (found == PCRE2_ERROR_NOMATCH && from < text_.size()) {
                    from += character_length(text_[from]);
                    continue;
                }
            }
            if (found < 0) return false;
            const PCRE2_SIZE* at = pcre2_get_ovector_pointer(data_);
            match = {at[0], at[1]};
            return match.begin >= from && match.end >= match.begin;
        }
    }

  private:
    static constexpr size_t kWindow = 256; // bytes
    static constexpr uint32_t kSteps = 256, kMaxSteps = 10'000'000;
    static constexpr size_t kPurse = 256, kPurseAByte = 64, kMaxSquare = size_t{1} << 22;

    int pay(const pcre2_callout_block* at) {
        const size_t now = at->current_position, cost = (now > last_paid_ ? now - last_paid_ : last_paid_ - now) + 1;
        last_paid_ = now;
        if (cost > purse_) return PCRE2_ERROR_CALLOUT;
        purse_ -= cost;
        return 0;
    }

    size_t window_end(size_t from) const {
        if (text_.size() - from <= kWindow) return text_.size();
        size_t end = from + kWindow;
        while (continues_character(text_[end])) --end; // a character's begin
        return end;
    }

    int run(const pcre2_code* code, size_t end, size_t from, uint32_t options, uint32_t steps) {
        pcre2_set_match_limit(limits_, steps);
        const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
        options |= PCRE2_NO_UTF_CHECK;
        const int found = pcre2_match(code, subject, end, from, options, data_, limits_);
        if (found != PCRE2_ERROR_JIT_STACKLIMIT) return found;
        return pcre2_match(code, subject, end, from, options | PCRE2_NO_JIT, data_, limits_);
    }

    const Regex& regex_;
    std::string_view text_;
    pcre2_match_data* data_;
    pcre2_match_context* limits_;
    size_t purse_ = 0;
    size_t last_paid_ = 0; // position
};

void Regex::find_all(std::string_view text, const Scratch& scratch, std::vector<Span>& out) const {
    Search search(*this, text, scratch);
    size_t from = 0, last_end = text.size() + 1; // none yet
    for (Span match; from <= text.size() && search.next(from, match);) {
        const bool empty = match.begin == match.end;
        if (!empty || match.end != last_end) out.push_back(match);
        last_end = match.end;
        from = match.end;
        if (empty) {
            if (from == text.size()) return;
            from += character_length(text[from]);
        }
    }
}

}  // namespace patchbay::text
