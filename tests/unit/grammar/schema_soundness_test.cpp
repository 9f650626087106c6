// JSON Schema: what joined schemas forbid is not generated, and what cannot be kept exactly is refused.
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

}  // namespace
}  // namespace patchbay::grammar::testing
