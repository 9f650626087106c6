#include "grammar/schema_values.hpp"

#include <gtest/gtest.h>

namespace patchbay::grammar::schema_values_test {
namespace {

bool same(const char* a, const char* b) { return same_value(Json::parse(a), Json::parse(b)); }

TEST(SchemaValues, AreTheSameByTheirMeaning) {
    EXPECT_TRUE(same("1", "1.0"));
    EXPECT_TRUE(same(R"({"a": [1, null], "b": "x"})", R"({"b": "x", "a": [1.0, null]})"));
    EXPECT_FALSE(same("[1, 2]", "[2, 1]"));
    EXPECT_FALSE(same(R"({"a": 1})", R"({"a": 1, "b": 1})"));
    EXPECT_FALSE(same("1", "true"));
    EXPECT_FALSE(same("{}", "[]"));
}

TEST(SchemaValues, DifferWhereADoubleWouldRound) {
    EXPECT_FALSE(same("9007199254740993", "9007199254740992.0"));
    EXPECT_TRUE(same("9007199254740992", "9007199254740992.0"));
    EXPECT_FALSE(same("18446744073709551615", "18446744073709551616.0"));
    EXPECT_FALSE(same("-1", "18446744073709551615.0"));
}

TEST(SchemaValues, CostTheirParts) {
    EXPECT_EQ(cost_of(Json(1)), 1u);
    EXPECT_EQ(cost_of(Json::parse("[1, 2, 3]")), 4u);
    const Json few = Json::parse("[1, 2]"), many = Json::parse("[1, 2, 3, 4]");
    const auto& a = few.get_ref<const Json::array_t&>();
    const auto& b = many.get_ref<const Json::array_t&>();
    EXPECT_EQ(cost_of(a, b), cost_of(b, a));
    EXPECT_EQ(cost_of(a, b), 2u + 4u + 8u);
}

TEST(SchemaValues, AreThoseOfConstBeforeEnum) {
    const Json both{{"const", 1}, {"enum", {2, 3}}}, neither{{"type", "string"}};
    ASSERT_EQ(values_of(both).size(), 1u);
    EXPECT_EQ(values_of(both)[0], Json(1));
    EXPECT_TRUE(values_of(neither).empty());
}

}  // namespace
}  // namespace patchbay::grammar::schema_values_test
