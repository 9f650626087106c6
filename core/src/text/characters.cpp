#include "text/characters.hpp"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <utility>

namespace patchbay::text {
namespace {

const uint8_t* raw(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }
UChar32 icu(char32_t c) { return static_cast<UChar32>(c); }

// Hugging Face tokenizers take these categories from a table of Unicode 8.
bool in_unicode_8(char32_t c) {
    UVersionInfo age;
    u_charAge(icu(c), age);
    return age[0] <= 8;
}

}  // namespace

char32_t next_character(std::string_view text, size_t& at) {
    UChar32 c;
    U8_NEXT_OR_FFFD(raw(text), at, text.size(), c);
    return static_cast<char32_t>(c);
}

char32_t character_before(std::string_view text, size_t& at) {
    const size_t window = std::min<size_t>(at, 4); // the macro's positions are 32-bit
    auto i = static_cast<int32_t>(window);
    UChar32 c;
    U8_PREV_OR_FFFD(raw(text.substr(at - window)), 0, i, c);
    at -= window - static_cast<size_t>(i);
    return static_cast<char32_t>(c);
}

size_t character_length(char lead) {
    const auto c = static_cast<unsigned char>(lead);
    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

void append_character(std::string& out, char32_t c) {
    uint8_t bytes[4];
    int32_t n = 0;
    U8_APPEND_UNSAFE(bytes, n, static_cast<uint32_t>(c));
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
}

bool is_white_space(char32_t c) { return u_isUWhiteSpace(icu(c)); }
bool is_number(char32_t c) { return (U_GET_GC_MASK(icu(c)) & U_GC_N_MASK) != 0; }
bool is_mark(char32_t c) { return (U_GET_GC_MASK(icu(c)) & U_GC_M_MASK) != 0; }

bool is_nonspacing_mark(char32_t c) { return u_charType(icu(c)) == U_NON_SPACING_MARK && in_unicode_8(c); }
bool is_control(char32_t c) {
    return (U_GET_GC_MASK(icu(c)) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0 && in_unicode_8(c);
}

// Source: BERT's tokenization. Hugging Face tokenizers begin extension E at 2B920, so that is what vocabularies saw.
bool is_bert_chinese(char32_t c) {
    constexpr std::pair<char32_t, char32_t> kBlocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                                         {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                                         {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                       [c](const auto& block) { return c >= block.first && c <= block.second; });
}

bool is_word(char32_t c) {
    constexpr uint32_t kKinds = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
    return u_isUAlphabetic(icu(c)) || (U_GET_GC_MASK(icu(c)) & kKinds) != 0 ||
           u_hasBinaryProperty(icu(c), UCHAR_JOIN_CONTROL);
}

bool is_punctuation(char32_t c) {
    if (c < 0x80) return c > 0x20 && c < 0x7F && !(u_isUAlphabetic(icu(c)) || (c >= '0' && c <= '9'));
    return (U_GET_GC_MASK(icu(c)) & U_GC_P_MASK) != 0 && in_unicode_8(c);
}

bool is_script_name(const std::string& name) {
    return u_getPropertyValueEnum(UCHAR_SCRIPT, name.c_str()) != UCHAR_INVALID_CODE;
}

void append_lowercase(std::string& out, char32_t c) {
    append_character(out, static_cast<char32_t>(u_tolower(icu(c))));
    if (c == 0x130) append_character(out, 0x307); // the one character whose lower case is two
}

}  // namespace patchbay::text
