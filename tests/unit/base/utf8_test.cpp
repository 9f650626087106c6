// Well-formedness and code points, where each kind of character begins and ends.
#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace patchbay::utf8_test {
namespace {

TEST(Utf8, TheFirstAndTheLastCharacterOfEachLengthAreRead) {
    const std::pair<const char*, char32_t> kAll[] = {
        {"\x01", 1}, {"\x7f", 0x7f}, {"\xc2\x80", 0x80}, {"\xdf\xbf", 0x7ff}, {"\xe0\xa0\x80", 0x800},
        {"\xed\x9f\xbf", 0xd7ff}, {"\xee\x80\x80", 0xe000}, {"\xef\xbf\xbf", 0xffff},
        {"\xf0\x90\x80\x80", 0x10000}, {"\xf4\x8f\xbf\xbf", 0x10ffff}};
    for (const auto& [bytes, code] : kAll) {
        const std::string_view text = bytes;
        EXPECT_EQ(utf8_step(text).what, Utf8::kCharacter) << text.size();
        EXPECT_EQ(utf8_step(text).bytes, text.size()) << text.size();
        EXPECT_EQ(uint32_t{code_point(text)}, uint32_t{code});
        EXPECT_TRUE(is_character(code));
        for (size_t n = 1; n < text.size(); ++n) EXPECT_EQ(utf8_step(text.substr(0, n)).what, Utf8::kUnfinished) << n;
    }
}

TEST(Utf8, WhatIsNoCharacterEndsTheValidPrefix) {
    for (const int64_t code : {-1, 0xd800, 0xdfff, 0x110000}) EXPECT_FALSE(is_character(code)) << code;
    for (const char* bad : {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                            "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82"})
        EXPECT_EQ(valid_prefix(std::string("a long text before \xc3\xa4") + bad), 21u) << bad;
    EXPECT_EQ(valid_prefix("whole \xe2\x82\xac"), 9u);
    EXPECT_EQ(valid_prefix(""), 0u);
}

TEST(Utf8, CharactersAreCountedByTheirFirstBytes) {
    EXPECT_EQ(count_characters("a\xc3\xa4\xe2\x82\xac\xf0\x90\x80\x80"), 4u);
    EXPECT_EQ(count_characters(""), 0u);
    EXPECT_TRUE(continues_character('\xa4'));
    EXPECT_FALSE(continues_character('\xc3'));
    EXPECT_FALSE(continues_character('a'));
}

}  // namespace
}  // namespace patchbay::utf8_test
