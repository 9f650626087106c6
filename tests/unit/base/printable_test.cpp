#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace patchbay::printable_test {
namespace {

TEST(Printable, leaves_text_as_it_is) {
    for (const char* text : {"", "config.json:3:1: 'a b'", "größe … 模型 🙂", "\\n"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, escapes_what_a_terminal_or_a_log_obeys) {
    EXPECT_EQ(printable("a\x1b[31mb\a\n\r\tc\x7f"), "a\\x1b[31mb\\x07\\n\\r\\tc\\x7f");
    EXPECT_EQ(printable("\xc2\x9b" "31m"), "\\u{009b}31m") << "the 8-bit form of ESC [";
    EXPECT_EQ(printable("\u202e\u2066\u2028\ufeff"), "\\u{202e}\\u{2066}\\u{2028}\\u{feff}");
    EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, escapes_bytes_that_are_no_utf8) {
    EXPECT_EQ(printable("\xff" "a\xc3"), "\\xffa\\xc3");
    EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
    EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
}

TEST(Printable, cuts_at_a_whole_character) {
    EXPECT_EQ(printable("äää", 5), "ää…");
    EXPECT_EQ(printable("äää", 6), "äää");
    EXPECT_EQ(printable(std::string(100'000, 'x')), std::string(100, 'x') + "…");
    EXPECT_LE(printable(std::string(100'000, '\xff')).size(), 403u);
}

TEST(PrintableMessage, keeps_beginning_and_end) {
    const std::string message = "m/config.json: key is '" + std::string(100'000, 'x') + "', expected a number";
    const std::string shown = printable_message(message);
    EXPECT_LT(shown.size(), 5'000u);
    EXPECT_TRUE(shown.starts_with("m/config.json: key is 'xxx"));
    EXPECT_TRUE(shown.ends_with("xxx', expected a number"));
    EXPECT_EQ(printable_message("one\nline"), "one\\nline");
    EXPECT_LT(printable_message(std::string(100'000, '\xbf')).size(), 20'000u);
}

TEST(PrintableLines, stay_lines) {
    EXPECT_EQ(printable_lines("a.yaml:1:1: x\nb\x1b"), "a.yaml:1:1: x\nb\\x1b");
    EXPECT_LT(printable_lines(std::string(100'000, '\n')).size(), 1'010u);
}

}  // namespace
}  // namespace patchbay::printable_test
