// Masks: what they allow is what can be read byte by byte, on small and on real vocabularies, at every place.
#include "patchbay/sdk/philox.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::mask_test {
namespace {

const char* kPerson = R"({
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "home": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/place"}]}
    },
    "required": ["name", "age"],
    "additionalProperties": false,
    "$defs": {"place": {"type": "object", "properties": {
        "street": {"type": "string", "pattern": "^[A-Z][a-zé]+ [0-9]+$"}, "next": {"$ref": "#/$defs/place"}}}}
})";
const char* kSums = R"ebnf(
root ::= expr "\n"
expr ::= expr [-+*/] term | term   # left recursion
term ::= [0-9]+ | "(" expr ")" | ident
ident ::= [a-zé]+ ("[" expr "]")?
)ebnf";
const char* kNested = R"ebnf(root ::= "(" root? ")" | "[" (root ("," root)*)? "]" | "\"" [^"\\]* "\"")ebnf";

std::vector<std::pair<std::string, StructuredOutputs>> grammars() {
    return {{"person", json(kPerson)},
            {"any object", {.json_object = true}},
            {"date", regex(R"(\d{4}-(0[1-9]|1[0-2])-\d{2}( at .{1,20})?)")},
            {"words", regex(R"((the|a|an) [^0-9\n]+[.!?])")},
            {"sums", ebnf(kSums)},
            {"nested", ebnf(kNested)},
            {"long", regex(R"("[a-z ]{3,90}";|'([ab]{2}){0,60}'(, |;)')")},
            {"long string", json(R"({"type": "array", "items": {"type": "string", "minLength": 5, "maxLength": 70}})")},
            {"choice", {.choice = {"yes", "no", "not sure", "日本"}}}};
}

// Walks random texts and compares at every place.
void compare(const std::shared_ptr<const Vocabulary>& v, size_t texts, size_t max_tokens) {
    for (const auto& [name, asked] : grammars()) {
        const auto grammar = compiled(asked, v);
        ASSERT_TRUE(grammar) << name;
        for (uint64_t seed = 0; seed < texts; ++seed) {
            Matcher m(grammar);
            for (size_t n = 0; n < max_tokens; ++n) {
                const auto mask = allowed(m, *v);
                ASSERT_EQ(mask, brute_force(m, *v)) << name << ", seed " << seed << ", token " << n;
                const auto ids = ids_of(mask);
                EXPECT_TRUE(!ids.empty() || m.complete()) << name << ": a dead end";
                EXPECT_EQ(m.finished(), ids.empty() && m.complete()) << name;
                if (ids.empty()) break;
                const auto bits = patchbay::draw(seed, n, Stream::kSample, 0);
                ASSERT_TRUE(*m.advance(ids[bits[0] % ids.size()]));
            }
        }
    }
}

TEST(Masks, AllowWhatCanBeReadByteByByte) { compare(small(), 30, 30); }

class RealVocabularies : public ::testing::TestWithParam<const char*> {};

TEST_P(RealVocabularies, AllowWhatCanBeReadByteByByte) {
    const auto folder = real_tokenizer(GetParam());
    if (!folder) GTEST_SKIP() << "no test data; set PATCHBAY_TEST_DATA";
    const auto tokenizer = text::Tokenizer::load(*folder);
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    const auto v = Vocabulary::of(**tokenizer, (*tokenizer)->vocab_size() + 17);
    compare(v, 2, 8);
}

INSTANTIATE_TEST_SUITE_P(All, RealVocabularies, ::testing::Values("gpt2", "qwen2", "llama2", "mistral_v03"));

}  // namespace
}  // namespace patchbay::grammar::testing::mask_test
