// The words of Lark's grammars: where each begins and ends, and what of it is wrong.
#include "grammar/lark_text.hpp"

#include <gtest/gtest.h>

#include "must.hpp"

namespace patchbay::grammar::lark_text_test {
namespace {

LarkText text(std::string_view source) { return must(LarkText::of(source)); }

TEST(LarkText, SpacesEndWithTheLineAndLinesDoNot) {
    LarkText t = text(" \t\r// a comment\n # another\n\n  name: a");
    t.skip_spaces();
    EXPECT_EQ(t.peek(), uint32_t{'\n'});
    t.skip_lines();
    EXPECT_EQ(t.name(), "name");
    EXPECT_EQ(t.peek(), uint32_t{':'});
    EXPECT_EQ(t.name(), "") << "none begins with ':'";
    LarkText comment = text("# without an end");
    comment.skip_lines();
    EXPECT_TRUE(comment.at_end());
}

TEST(LarkText, AStringIsReadToItsQuoteWithItsEscapes) {
    EXPECT_EQ(must(text(R"(a\n\t\"\\/\x41\u00e9\U0001f600é" rest)").quoted()), U"a\n\t\"\\/A\u00e9\U0001f600\u00e9");
    LarkText t = text("a\" rest");
    must(t.quoted());
    EXPECT_EQ(t.peek(), uint32_t{' '}) << "the quote is read";
}

TEST(LarkText, AStringThatIsWrongIsRefusedWithItsPlace) {
    EXPECT_EQ(text("ab").quoted().error(), "grammar: a string without its closing '\"' at line 1, column 3");
    EXPECT_EQ(text("ab\n\"").quoted().error(), "grammar: a string without its closing '\"' at line 1, column 3");
    EXPECT_EQ(text(R"(\ud800")").quoted().error(), "grammar: an escape that is not a character at line 1, column 7");
    const auto unknown = text(R"(\q")").quoted();
    EXPECT_EQ(unknown.error(), "grammar: '\\q' is not supported at line 1, column 3");
    EXPECT_EQ(unknown.code(), StatusCode::kUnsupported);
    EXPECT_EQ(text("ab").quoted().code(), StatusCode::kInvalid);
}

TEST(LarkText, APatternEndsWithASlashOutsideOfClassesAndEscapes) {
    LarkText t = text(R"([/a\]b]\/é/i)");
    EXPECT_EQ(must(t.slashed()), R"([/a\]b]\/é)");
    EXPECT_EQ(t.peek(), uint32_t{'i'});
    EXPECT_EQ(text("[/").slashed().error(), "grammar: a pattern without its closing '/' at line 1, column 3");
}

TEST(LarkText, IsUtf8) { EXPECT_EQ(LarkText::of("a: \"\xff\"").error(), "a grammar: byte 4 is not UTF-8"); }

}  // namespace
}  // namespace patchbay::grammar::lark_text_test
