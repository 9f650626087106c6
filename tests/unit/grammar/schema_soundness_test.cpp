// JSON Schema: what joined schemas forbid is not generated, and what cannot be kept exactly is refused.
#include "grammar/json_numbers.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing {
namespace {

TEST(SchemaSoundness, AFalseItemsBetweenLongerPrefixesCutsThemAll) {
    const std::string three = R"({"prefixItems": [{"type": "integer"}, {"type": "integer"}, {"type": "integer"}]})";
    const auto grammar = compiled(json(R"({"type": "array", "allOf": [)" + three +
                                       R"(, {"prefixItems": [{"type": "integer"}], "items": false}, )" + three + "]}"));
    EXPECT_TRUE(accepts(grammar, "[1]"));
    EXPECT_FALSE(accepts(grammar, "[1,2]"));
    EXPECT_FALSE(accepts(grammar, "[true]"));
}

TEST(SchemaSoundness, AMemberThatIsFalseIsNoOtherMemberEither) {
    const auto grammar =
        compiled(json(R"({"type": "object", "properties": {"a": false, "b": {}}, "additionalProperties": true})"));
    EXPECT_FALSE(accepts(grammar, R"({"a":1})"));
    EXPECT_TRUE(accepts(grammar, R"({"b":1,"c":1})"));
    EXPECT_TRUE(accepts(grammar, R"({"aa":1})"));
    const auto joined = compiled(json(R"({"type": "object", "allOf": [{"properties": {"a": {"type": "integer"}}},
        {"properties": {"a": false}}], "additionalProperties": {"type": "integer"}})"));
    EXPECT_FALSE(accepts(joined, R"({"a":1})"));
    EXPECT_TRUE(accepts(joined, R"({"b":1})"));
}

TEST(SchemaSoundness, AWholeNumberHasNoNegativeZero) {
    for (const char* schema : {R"({"type": "integer", "minimum": -0.5, "maximum": 0})", R"({"type": "integer"})",
                               R"({"type": "integer", "multipleOf": 3})"}) {
        EXPECT_TRUE(accepts(json(schema), "0")) << schema;
        EXPECT_FALSE(accepts(json(schema), "-0")) << schema;
    }
}

TEST(SchemaSoundness, AStepOfNumbersIsPaidForBeforeItIsBuilt) {
    Rules rules;
    Work little(10'000);
    EXPECT_FALSE(multiple_of(rules, Json(9999), little)); // before anything is built
}

TEST(SchemaSoundness, PreparingStopsAtTheFirstStateThatIsTooAmbiguous) {
    const auto grammar = compiled(regex("(a?){20000}(b?){20000}(c?){20000}(d?){20000}"));
    ASSERT_TRUE(grammar);
    const uint64_t before = grammar->bytes();
    grammar->prepare(GrammarCache::kPreparedNodes);
    EXPECT_LT(grammar->bytes() - before, 4u << 20); // what one state leaves behind
}

}  // namespace
}  // namespace patchbay::grammar::testing
