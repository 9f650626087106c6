#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.hpp"

#include <pcre2.h>

#include "text/utf8.hpp"

namespace patchbay::text {
namespace {

// Oniguruma's pattern in PCRE2's syntax. \s is Unicode's White_Space in one and a little more in the other.
Result<std::string> translate(std::string_view pattern) {
    const auto refuse = [&](const std::string& what) {
        return fail("pattern '" + std::string(pattern) + "': " + what + " is not supported");
    };
    std::string out;
    bool in_class = false;
    for (size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        if (c == '\\' && i + 1 < pattern.size()) {
            const char escaped = pattern[++i];
            if (std::string_view("hHbBGKkgXyYOR").find(escaped) != std::string_view::npos)
                return refuse(std::string("\\") + escaped);
            if (escaped == 's')
                out += "\\p{WSpace}";
            else if (escaped == 'S')
                out += "\\P{WSpace}";
            else if (escaped == 'w')
                out += in_class ? "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}" : "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";
            else if (escaped == 'W' && in_class)
                return refuse("\\W in a class");
            else if (escaped == 'W')
                out += "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";
            else
                out += {c, escaped};
            const bool braces = std::string_view("pPxou").find(escaped) != std::string_view::npos &&
                                pattern.substr(i + 1).starts_with('{');
            if (braces) { // \p{L}: not a repeat count
                const size_t close = pattern.find('}', i);
                if (close == pattern.npos) return refuse("a brace that does not close");
                out += pattern.substr(i + 1, close - i);
                i = close;
            }
            continue;
        }
        if (!in_class && pattern.substr(i).starts_with("(*")) return refuse("a verb (*…)");
        if (!in_class && pattern.substr(i).starts_with("(?")) { // m means another thing there
            const size_t end = pattern.find_first_not_of("imsx-", i + 2);
            if (pattern.substr(i + 2, end - i - 2).find_first_of("msx") != std::string_view::npos)
                return refuse("an inline flag other than (?i)");
        }
        out += c;
        if (in_class) {
            if (c == ']')
                in_class = false;
            else if (c == '[')
                return refuse("a class inside a class");
            else if (c == '&' && pattern.substr(i).starts_with("&&"))
                return refuse("the intersection && of classes");
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
Regex::Scratch Regex::scratch() const { return Scratch(pcre2_match_data_create_from_pattern(code_.get(), nullptr)); }

Result<Regex> Regex::compile(const std::string& pattern, Syntax syntax) {
    constexpr size_t kMostPattern = 16384;
    if (pattern.size() > kMostPattern)
        return fail("a pattern of " + std::to_string(pattern.size()) + " bytes is longer than " +
                    std::to_string(kMostPattern));
    std::string source = pattern;
    uint32_t options = PCRE2_UTF | PCRE2_LITERAL;
    if (syntax == Syntax::kPattern) {
        PB_TRY(source, translate(pattern));
        options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C; // Ruby's ^ and $ are of lines
    }
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_code* code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), options, &error, &at, nullptr);
    if (!code) {
        PCRE2_UCHAR text[160] = {};
        pcre2_get_error_message(error, text, sizeof text);
        return fail("pattern '" + pattern + "' does not compile: " + reinterpret_cast<const char*>(text) +
                    " (near character " + std::to_string(at) + ")");
    }
    Regex out(code);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); // where it fails the interpreter matches
    return out;
}

void Regex::find_all(std::string_view text, const Scratch& scratch, std::vector<Span>& out) const {
    struct Context {
        pcre2_match_context* limits = pcre2_match_context_create(nullptr);
        ~Context() { pcre2_match_context_free(limits); }
    } context;
    pcre2_set_match_limit(context.limits, 10'000'000);
    pcre2_set_heap_limit(context.limits, 256 * 1024); // KiB
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    size_t from = 0, last_end = text.size() + 1; // none yet
    while (from <= text.size()) {
        int found =
            pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, scratch.get(), context.limits);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found = pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                                scratch.get(), context.limits);
        if (found < 0) return;
        const PCRE2_SIZE* at = pcre2_get_ovector_pointer(scratch.get());
        const Span match{at[0], at[1]};
        if (match.begin < from || match.end < match.begin) return;
        const bool empty = match.begin == match.end;
        if (!empty || match.end != last_end) out.push_back(match);
        last_end = match.end;
        from = match.end;
        if (empty) {
            if (from == text.size()) return;
            from += utf8_step(text.substr(from)).bytes;
        }
    }
}

}  // namespace patchbay::text
