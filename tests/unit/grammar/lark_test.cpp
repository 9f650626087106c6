// Grammars as Lark writes them, beside what Lark's own parser says (make_lark_goldens.py).
#include <fstream>
#include <nlohmann/json.hpp>

#include "grammar/lark.hpp"
#include "paths.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::lark_test {
namespace {

TEST(Lark, AcceptsTheTextsThatLarkAccepts) {
    const std::string file = std::string(kSourceDir) + "/tests/unit/grammar/lark_goldens.json";
    const auto goldens = nlohmann::json::parse(std::ifstream(file));
    for (const auto& [name, golden] : goldens.items()) {
        const auto g = compiled(ebnf(golden["grammar"]));
        ASSERT_TRUE(g) << name;
        ASSERT_GE(golden["texts"].size(), 200u);
        for (const auto& one : golden["texts"])
            EXPECT_EQ(accepts(g, one[0].get<std::string>()), one[1].get<bool>()) << name << ": " << one[0];
    }
}

// As Python's re.IGNORECASE has it: a class forbids both cases of what an inverted one lists.
TEST(Lark, APatternOfEitherCaseForbidsWhatAnInvertedClassLists) {
    const std::vector<std::tuple<std::string, std::string, bool>> cases = {
        {"[^x]", "x", false},     {"[^x]", "X", false},       {"[^X]", "x", false},      {"[^a-cq]", "B", false},
        {"[^a-cq]", "d", true},   {"[^x]", "-", true},        {"[w-y]", "X", true},      {"[W-Y]", "x", true},
        {"x", "X", true},         {R"(\x78)", "X", true},     {R"([^\W])", "X", true},   {R"([^\W])", "-", false},
        {R"(\p{Lu})", "x", true}, {R"(\P{Lu})", "x", false}, {R"([^\p{Lu}])", "x", false}, {R"(\P{Lu})", "1", true}};
    for (const auto& [pattern, text, matches] : cases)
        EXPECT_EQ(accepts(ebnf("start: /" + pattern + "/i"), text), matches) << pattern << ": " << text;
}

// Beyond ASCII, too; what \w and \W stand for does not change.
TEST(Lark, EitherCaseIsUnicodes) {
    const std::vector<std::tuple<std::string, std::string, bool>> cases = {
        {"\"straße\"i", "STRAẞE", true}, {"\"straße\"i", "STRASSE", false}, {"\"é\"i", "É", true},
        {"\"λ\"i", "Λ", true},           {"\"σ\"i", "ς", true},            {"\"k\"i", "\u212A", true},
        {"\"i\"i", "\u0131", true},      {"\"é\"", "É", false},            {"/é+/i", "éÉ", true},
        {"/[à-ý]/i", "É", true},         {"/[^é]/i", "É", false},           {"/[^s]/i", "\u017F", false},
        {"/[^é]/i", "e", true},          {"/\\W/i", "s", false},            {"/[\\W]/i", "k", false},
        {"/[^\\W]/i", "s", true},        {"/\\w/i", "s", true}};
    for (const auto& [pattern, text, matches] : cases)
        EXPECT_EQ(accepts(ebnf("start: " + pattern), text), matches) << pattern << ": " << text;
}

TEST(Lark, IsDistinguishedFromGbnfByItsFirstRule) {
    for (const char* text :
         {"start: \"a\"", "  // c\n# c\n?start : a", "%import common.WS\nstart: WS", "a.2: b", "A:b"})
        EXPECT_TRUE(is_lark(text)) << text;
    for (const char* text :
         {"root ::= \"a:\"", "# x: y\nroot ::= [a]", "root-1 ::= \"\"", "root = a", "", ":", "a-b: c"})
        EXPECT_FALSE(is_lark(text)) << text;
}

TEST(Lark, RefusesWithTheReason) {
    const std::vector<std::pair<std::string, std::string>> refused = {
        {"begin: \"a\"", "no rule is named 'start'"},
        {"start: other", "'other' is used and neither defined nor imported"},
        {"start: \"a\"\nstart: \"b\"", "'start' is defined a second time at line 2, column 7"},
        {"start: \"a", "a string without its closing"},
        {"start: /a", "a pattern without its closing"},
        {"start: /(?=a)b/", "the pattern /(?=a)b/: regex: a lookahead"},
        {"start: /a/x", "the flag 'x' of a pattern is not supported (supported: i, s)"},
        {"start: (\"a\"", "a '(' that does not close"},
        {"start: \"a\")", "a bracket that closes none"},
        {"start: \"a\" ~ 3..2", "a repetition that is not ~n or ~n..m"},
        {"start: \"b\"..\"a\"", "a range that is not of two characters in order"},
        {"start: pair{a, b}", "the template 'pair{…}' is not supported"},
        {"pair{x}: x\nstart: \"a\"", "expected"},
        {"start[capture]: \"a\"", "expected"},
        {"start: <|tool|>", "a token of the vocabulary"},
        {"start: %json {}", "'%json' inside a rule is not supported"},
        {"%declare A\nstart: A", "'%declare' is not supported"},
        {"%import python.NAME\nstart: NAME", "%import of 'python' is not supported"},
        {"%import common.NOPE\nstart: NOPE", "common has no 'NOPE'"},
        {"start: A\nA: start", "the rule 'start' in a terminal"},
        {"start: start", "nothing matches"},
        {"start: a\na: b \"x\" | \"y\"\nb: a", "rule 'a' calls itself before anything is read"},
        {"start: \"\\q\"", "'\\q' is not supported"},
        {"start: " + std::string(500, '(') + "\"a\"" + std::string(500, ')'), "nested groups"},
        {"start: \"a\"" + std::string(200'000, '?'), "more than 100 quantifiers in a row"},
    };
    for (const auto& [text, why] : refused) {
        const std::string error = refusal(ebnf(text));
        EXPECT_NE(error.find(why), error.npos) << text.substr(0, 60) << ": " << error;
    }
}

}  // namespace
}  // namespace patchbay::grammar::testing::lark_test
