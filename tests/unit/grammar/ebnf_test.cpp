// Grammars in EBNF: what they read, what they refuse, and that none of them hangs.
#include "ends.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing {
namespace {

TEST(Ebnf, ReadsTheFormsOfGbnf) {
    const auto g = compiled(ebnf(R"ebnf(
# a list of moves
root ::= (move " ")+ result?
move ::= [KQRBN]? [a-h] [1-8]
      | "O-O" "-O"?          # castling
result ::= "1-0" | "0-1" | "\u00bd" | [^\x00-\x7F] {2,3} | . "!"
)ebnf"));
    for (const char* text : {"e4 ", "e4 Nf6 ", "O-O O-O-O 1-0", "a1 ½", "a1 éé", "a1 日本語", "a1 x!", "a1 é!"})
        EXPECT_TRUE(accepts(g, text)) << text;
    for (const char* text : {"", "e9 ", "e4", "O-O-", "a1 é", "a1 éééé", "a1 1-00"})
        EXPECT_FALSE(accepts(g, text)) << text;
}

TEST(Ebnf, ReadsRecursionOnTheLeftOfARule) {
    const auto g = compiled(ebnf(R"ebnf(
        root ::= root "+" product | product
        product ::= product "*" atom | atom | product "/" atom
        atom ::= [0-9]+ | "(" root ")"
    )ebnf"));
    for (const char* text : {"1", "1+2", "1+2*3+4", "(1+2)/3*(4)"}) EXPECT_TRUE(accepts(g, text)) << text;
    for (const char* text : {"", "+", "1+", "(1", "1**2"}) EXPECT_FALSE(accepts(g, text)) << text;
}

TEST(Ebnf, RefusesWithTheReason) {
    const std::vector<std::pair<std::string, std::string>> refused = {
        {"start ::= \"a\"", "no rule is named 'root'"},
        {"root ::= other", "rule 'other' is used and not defined"},
        {"root ::= \"a\"\nroot ::= \"b\"", "defined a second time at line 2, column 9"},
        {"root = \"a\"", "expected '::=' after 'root'"},
        {"root ::= \"a", "without its closing"},
        {"root ::= [a", "without its ']'"},
        {"root ::= (\"a\"", "without its ')'"},
        {"root ::= \"a\")", "')' without"},
        {"root ::= 'a'", "did not expect '''"},
        {"root ::= \"a\"{3,2}", "repetition"},
        {"root ::= \"a\"{30000}", "repetition"},
        {"root ::= \"\\q\"", "'\\q' is not supported"},
        {"root ::= (?=\"a\")", "did not expect"},
        {"root ::= root", "nothing matches"},
        {"root ::= \"a\" root", "nothing matches"},
        {"root ::= a\na ::= b \"x\" | \"y\"\nb ::= a", "rule 'a' calls itself before anything is read"},
        {"root ::= x? root \"a\" | \"b\"\nx ::= \"x\"", "rule 'root' calls itself"},
        {"root ::= []", "nothing matches"},
        {"root ::= \"a\"" + std::string(200'000, '?'), "more than 100 quantifiers in a row"},
        {"root ::= " + std::string(500, '(') + "\"a\"" + std::string(500, ')'), "nested groups"},
        {"root ::= \"" + std::string(300'000, 'a') + "\"", "expected at most"},
    };
    for (const auto& [text, why] : refused) {
        const std::string error = refusal(ebnf(text));
        EXPECT_NE(error.find(why), error.npos) << text.substr(0, 60) << ": " << error;
    }
}

void compile_and_match(const std::string& text) { // until it is refused: as too large, or too ambiguous
    auto automaton = compile(ebnf(text));
    if (!automaton) return;
    const auto grammar = std::make_shared<Grammar>(*std::move(automaton), small());
    Matcher m(grammar);
    std::vector<uint32_t> mask(small()->words());
    for (int i = 0; i < 60; ++i) {
        const auto advanced = m.advance('a');
        if (!advanced || !*advanced || !m.allow(mask)) return;
    }
}

// Each of them would take exponential time, or for ever, by the obvious way.
TEST(Ebnf, EndsAmbiguousAndLargeGrammarsOneWayOrTheOther) {
    const std::vector<std::string> hard = {
        R"(root ::= root root | "a")",
        R"(root ::= ("a"*)* "b")",
        R"(root ::= "a" root "b" | "a" root "c" | "d")",
        R"(root ::= x x x x x x x x
x ::= y y y y y y y y
y ::= z z z z z z z z
z ::= "a"? "b"?)",
        R"(root ::= ([a-z]* "a" [a-z]{30})+)",
        "root ::= (((\"a\"{1000}){1000}){1000}){1000} \"b\"",
        "root ::= [a-z]* (\"a\" | \"b\" [a-z]{500})* [a-z]{20000}",
    };
    for (const std::string& text : hard) EXPECT_TRUE(ends([text] { compile_and_match(text); })) << text;
}

TEST(Ebnf, FollowsAnAmbiguousTextThroughItsTailCalls) {
    const auto g =
        compiled(ebnf("root ::= items\nitems ::= item items | item\nitem ::= [ab] ws\nws ::= \" \" ws | \"\""));
    std::string text;
    for (int i = 0; i < 5000; ++i) text += "a  b";
    EXPECT_TRUE(accepts(g, text));
    EXPECT_LT(g->bytes(), 1u << 20); // calls at the end of a rule leave nothing
}

}  // namespace
}  // namespace patchbay::grammar::testing
