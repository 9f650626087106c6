#include "grammar/lark_text.hpp"

#include <utility>

#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "grammar/code_points.hpp"
#include "grammar/ebnf.hpp"

namespace patchbay::grammar {

Result<LarkText> LarkText::of(std::string_view text) {
    PB_TRY(Utf8Reader reader, Utf8Reader::of(text, kMaxEbnfBytes, "a grammar"));
    return LarkText(std::move(reader));
}

Failure LarkText::refuse(const Failure& why) const { return fail(why.code, "grammar: " + why.text + " " + where()); }
Failure LarkText::refuse(const std::string& what) const { return refuse(invalid(what)); }

void LarkText::skip_spaces() {
    while (!at_end()) {
        const uint32_t c = peek();
        if ((c == '/' && peek(1) == '/') || c == '#')
            while (!at_end() && peek() != '\n') next();
        else if (c == ' ' || c == '\t' || c == '\r')
            next();
        else
            return;
    }
}

void LarkText::skip_lines() {
    for (skip_spaces(); take(U'\n'); skip_spaces()) {
    }
}

std::string LarkText::name() {
    std::string out;
    while (is_name_character(peek())) out += static_cast<char>(next());
    return out;
}

Result<std::u32string> LarkText::quoted() {
    std::u32string out;
    while (peek() != '"') {
        if (at_end() || peek() == '\n') return refuse("a string without its closing '\"'");
        const uint32_t c = next();
        if (c != '\\') {
            out += c;
            continue;
        }
        const uint32_t e = at_end() ? 0 : next();
        if (e == 'n') out += U'\n';
        else if (e == 't') out += U'\t';
        else if (e == 'r') out += U'\r';
        else if (e == 'f') out += U'\f';
        else if (e == '\\' || e == '"' || e == '/' || e == '\'') out += e;
        else if (e == 'x' || e == 'u' || e == 'U') {
            const auto value = hex(e == 'x' ? 2 : e == 'u' ? 4 : 8);
            if (!value || !is_character(*value)) return refuse("an escape that is not a character");
            out += *value;
        } else {
            return refuse(unsupported("'\\" + utf8(e) + "' is not supported"));
        }
    }
    next();
    return out;
}

Result<std::string> LarkText::slashed() {
    std::string source;
    for (bool in_class = false; in_class || peek() != '/';) {
        if (at_end() || peek() == '\n') return refuse("a pattern without its closing '/'");
        const uint32_t c = next();
        source += utf8(c);
        if (c == '\\' && !at_end()) source += utf8(next());
        else if (c == '[') in_class = true;
        else if (c == ']') in_class = false;
    }
    next();
    return source;
}

}  // namespace patchbay::grammar
