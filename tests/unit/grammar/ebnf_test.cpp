// Grammars in EBNF: what they read, what they refuse, and that none of them hangs.
#include <pthread.h>

#include <functional>

#include "ends.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::ebnf_test {
namespace {

// Calls f on a thread with a stack of so many bytes.
void with_stack(size_t bytes, std::function<void()> f) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    const auto run = [](void* call) -> void* {
        (*static_cast<std::function<void()>*>(call))();
        return nullptr;
    };
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
}

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

TEST(Ebnf, ReadsLineFeedsInLiteralsAndClasses) {
    const auto g = compiled(ebnf("root ::= \"a\n\" [b\n]"));
    for (const char* text : {"a\nb", "a\n\n"}) EXPECT_TRUE(accepts(g, text)) << text;
    for (const char* text : {"ab", "a\n", "a\\nb"}) EXPECT_FALSE(accepts(g, text)) << text;
}

TEST(Ebnf, RefusesWithTheReason) {
    const std::vector<std::pair<std::string, std::string>> refused = {
        {"start ::= \"a\"", "no rule is named 'root'"},
        {"root ::= other", "rule 'other' is used and not defined"},
        {"root ::= \"a\"\nroot ::= \"b\"", "defined a second time at line 2, column 9"},
        {"root = \"a\"", "expected '::=' after 'root'"},
        {"root ::= \"a", "without its closing"},
        {"root ::= \"a\nb ::= [a]", "without its closing"},
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

// A letter in as many groups with as many quantifiers as are allowed.
std::string tower(char letter, std::string_view quantifier) {
    std::string out = {'"', letter, '"'};
    for (int group = 0; group < 100; ++group) {
        out = "(" + out;
        for (size_t n = 0; n < 100; n += quantifier == "*?" ? 2 : 1) out += quantifier;
        out += ")";
    }
    return out;
}

// Each of them would take exponential time, or for ever, by the obvious way.
TEST(Ebnf, EndsAmbiguousAndLargeGrammarsOneWayOrTheOther) {
    std::string towers;
    for (const char letter : std::string("abcdef")) towers += tower(letter, "{2}") + " ";
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
        "root ::= " + towers + "\"b\"",
    };
    for (const std::string& text : hard) EXPECT_TRUE(ends([text] { compile_and_match(text); })) << text;
}

// Of threads that serve requests the stack is 8 MiB in a release build, and no more in a slower one.
TEST(Ebnf, ChainsOfQuantifiersTakeNoDeepStack) {
    for (const char* quantifier : {"{2}", "{1,2}"}) {
        const std::string text = "root ::= " + tower('a', quantifier) + " \"b\"";
        bool done = false;
        with_stack(size_t{1} << 20, [&] { done = bool(compile(ebnf(text))); });
        EXPECT_TRUE(done) << quantifier;
    }
    for (const char* quantifier : {"?", "*", "+", "{1}", "{0,1}", "*?"}) {
        const std::string text = tower('a', quantifier);
        bool done = false;
        with_stack(size_t{2} << 20, [&] { done = bool(compile(ebnf("root ::= " + text + " \"b\""))); });
        EXPECT_TRUE(done) << quantifier;
        const auto g = compiled(ebnf("root ::= " + text + " \"b\""));
        EXPECT_TRUE(accepts(g, "ab")) << quantifier;
        const bool none = std::string_view(quantifier).find_first_of("?*0") != std::string_view::npos;
        EXPECT_EQ(accepts(g, "b"), none) << quantifier;
        const bool many = std::string_view(quantifier).find_first_of("*+") != std::string_view::npos;
        EXPECT_EQ(accepts(g, "aaab"), many) << quantifier;
    }
}

TEST(Ebnf, QuantifiersOfQuantifiersMeanTheirProducts) {
    struct Case {
        const char* quantifiers;
        uint32_t low, high;
    };
    constexpr uint32_t kMany = 40;
    const Case cases[] = {{"?{3}", 0, 3},  {"{3}?", 0, 3},      {"+{2}", 2, kMany}, {"*{2}", 0, kMany},
                          {"+{0,2}", 0, kMany}, {"?+", 0, kMany}, {"+?", 0, kMany},  {"{1}{2,5}", 2, 5},
                          {"?{0}", 0, 0}, {"+{0}", 0, 0},       {"{2,}+", 2, kMany}, {"+{2,}", 2, kMany}};
    for (const Case& c : cases) {
        const auto g = compiled(ebnf("root ::= \"a\"" + std::string(c.quantifiers) + " \"b\""));
        for (uint32_t n = 0; n <= 8; ++n) {
            const bool in_gap = std::string_view(c.quantifiers) == "{3}?" && n > 0 && n < 3;
            EXPECT_EQ(accepts(g, std::string(n, 'a') + "b"), n >= c.low && n <= c.high && !in_gap)
                << c.quantifiers << ", " << n;
        }
    }
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
}  // namespace patchbay::grammar::testing::ebnf_test
