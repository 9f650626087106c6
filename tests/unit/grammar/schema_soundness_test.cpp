// JSON Schema: what joined schemas forbid is not generated, and what cannot be kept exactly is refused.
#include <functional>

#include "grammar/json_numbers.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::schema_soundness_test {
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
    EXPECT_FALSE(multiple_of(rules, Json(9999), little));  // before anything is built
}

TEST(SchemaSoundness, PreparingStopsAtTheFirstStateThatIsTooAmbiguous) {
    const auto grammar = compiled(regex("(a?){20000}(b?){20000}(c?){20000}(d?){20000}"));
    ASSERT_TRUE(grammar);
    const uint64_t before = grammar->bytes();
    grammar->prepare(GrammarCache::kPreparedNodes);
    EXPECT_LT(grammar->bytes() - before, 4u << 20);  // what one state leaves
}

TEST(SchemaSoundness, UnevaluatedPropertiesForbidWhatNoSchemaDescribes) {
    EXPECT_NE(refusal(json(R"({"type": "object", "required": ["x"], "unevaluatedProperties": false})")).find("nothing"),
              std::string::npos);
    const auto own = compiled(json(R"({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": false,
        "allOf": [{"properties": {"b": {}}}], "anyOf": [{"properties": {"c": {}}}, {"properties": {"d": {}}}]})"));
    EXPECT_TRUE(accepts(own, R"({"b":1,"a":1,"c":1})"));
    EXPECT_FALSE(accepts(own, R"({"x":1})"));
    EXPECT_TRUE(accepts(json(R"({"unevaluatedProperties": false, "additionalProperties": {}})"), R"({"x":1})"));
    EXPECT_TRUE(accepts(json(R"({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {}},
        "unevaluatedProperties": false}}})"),
                        R"({"a":1})"));
    EXPECT_NE(refusal(json(R"({"allOf": [{"properties": {"a": {}}, "unevaluatedProperties": false},
                                         {"properties": {"b": {}}, "required": ["b"]}]})"))
                  .find("nothing matches"),
              std::string::npos); // beside is not within
    EXPECT_NE(refusal(json(R"({"const": {"a": 1}, "unevaluatedProperties": false})")).find("keyword 'unevaluated"),
              std::string::npos);
}

TEST(SchemaSoundness, OneOfKnowsThatValuesAreTheSameHoweverTheyAreWritten) {
    for (const char* schema :
         {R"({"oneOf": [{"const": 1}, {"const": 1.0}]})",
          R"({"oneOf": [{"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}]})"})
        EXPECT_NE(refusal(json(schema)).find("nothing matches"), std::string::npos) << schema;
    EXPECT_FALSE(accepts(json(R"({"oneOf": [{"type": "integer"}, {"const": 1.0}]})"), "1"));
    EXPECT_FALSE(accepts(json(R"({"oneOf": [{"type": "integer"}, {"const": 1.0}]})"), "1.0"));
    EXPECT_TRUE(accepts(json(R"({"oneOf": [{"type": "integer"}, {"const": 1.0}]})"), "2"));
    const auto lists = json(R"({"oneOf": [{"enum": [[{"a": 1, "b": 2}]]}, {"enum": [3, [{"b": 2, "a": 1}]]}]})");
    EXPECT_FALSE(accepts(lists, R"([{"a":1,"b":2}])"));
    EXPECT_TRUE(accepts(lists, "3"));
    EXPECT_EQ(refusal(json(R"({"oneOf": [{"type": "integer"}, {"const": 1.5}]})")), "");
    EXPECT_EQ(refusal(json(R"({"oneOf": [{"const": 9007199254740993}, {"const": 9007199254740992.0}]})")), "");
    EXPECT_TRUE(
        accepts(json(R"({"allOf": [{"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}]})"), R"({"a":1,"b":2})"));
}

std::string of_draft(const std::string& draft, const std::string& members) {
    return R"({"$schema": ")" + draft + R"(", )" + members + "}";
}
constexpr const char *kDraft4 = "http://json-schema.org/draft-04/schema#",
                     *kDraft7 = "http://json-schema.org/draft-07/schema#",
                     *k2019 = "https://json-schema.org/draft/2019-09/schema",
                     *k2020 = "https://json-schema.org/draft/2020-12/schema";

TEST(SchemaSoundness, BesideARefDraftsUpTo7IgnoreAllElse) {
    const std::string one_of = R"("definitions": {"a": {"type": "integer"}, "b": {"type": "number", "minimum": 0}},
        "oneOf": [{"$ref": "#/definitions/a"}, {"$ref": "#/definitions/b", "maximum": 10}])";
    EXPECT_FALSE(accepts(json(of_draft(kDraft7, one_of)), "20")); // of both
    EXPECT_TRUE(accepts(json(of_draft(kDraft7, one_of)), "20.5"));
    EXPECT_TRUE(accepts(json(of_draft(kDraft7, one_of)), "-20"));
    EXPECT_TRUE(accepts(json(of_draft(k2019, one_of)), "20"));
    EXPECT_FALSE(accepts(json(of_draft(k2019, one_of)), "20.5"));

    const std::string negated = R"("definitions": {"a": {"type": "number"}},
        "not": {"$ref": "#/definitions/a", "type": "string"})";
    EXPECT_FALSE(accepts(json(of_draft(kDraft4, negated)), "5"));
    EXPECT_TRUE(accepts(json(of_draft(kDraft4, negated)), R"("5")"));

    const std::string closed = R"("definitions": {"a": {"properties": {"x": {"$ref": "#/$defs/i"}}, "required": ["x"]}},
        "$defs": {"i": {"type": "integer"}}, "$ref": "#/definitions/a", "additionalProperties": false)";
    EXPECT_TRUE(accepts(json(of_draft(kDraft7, closed)), R"({"x":1})"));
    EXPECT_FALSE(accepts(json(of_draft(kDraft7, closed)), R"({"x":"1"})"));
    EXPECT_NE(refusal(json(of_draft(k2020, closed))).find("nothing matches"), std::string::npos);
    // A property of the name is no reference.
    const std::string property = R"("properties": {"$ref": {"type": "integer"}}, "required": ["$ref"])";
    EXPECT_FALSE(accepts(json(of_draft(kDraft7, property)), R"({"$ref":"x"})"));
}

TEST(SchemaSoundness, ADraftHasNoKeywordsOfLaterOnes) {
    struct Case {
        std::string members;
        const char *draft, *later; // that does not have the keyword; that has it
        const char* text;          // valid by the keyword alone
    };
    for (const Case& c : {Case{R"("not": {"type": "array", "prefixItems": [{"type": "string"}]})", kDraft7, k2020, "[1]"},
                          Case{R"("not": {"type": "array", "prefixItems": [{"type": "string"}]})", k2019, k2020, "[1]"},
                          Case{R"("not": {"type": "integer", "const": 3})", kDraft4, kDraft7, "4"},
                          Case{R"("type": "integer", "not": {"if": {"type": "integer"}, "then": {"minimum": 9}})",
                               "http://json-schema.org/draft-06/schema#", kDraft7, "4"},
                          Case{R"("not": {"type": "object", "dependentRequired": {"a": ["b"]}})", kDraft7, k2019,
                               R"({"a":1})"}}) {
        const bool valid_before = refusal(json(of_draft(c.draft, c.members))).empty() &&
                                  accepts(json(of_draft(c.draft, c.members)), c.text);
        EXPECT_FALSE(valid_before) << c.draft << c.members;
        EXPECT_TRUE(accepts(json(of_draft(c.later, c.members)), c.text)) << c.later << c.members;
    }
    EXPECT_TRUE(accepts(json(of_draft(kDraft4, R"("type": "integer", "const": 3)")), "4"));
    EXPECT_FALSE(accepts(json(R"({"type": "integer", "const": 3})"), "4"));
}

TEST(SchemaSoundness, RefusesNumbersThatWouldBeRounded) {
    for (const char* number : {"18446744073709551617", "-9223372036854775809", "0.12345678901234567891", "1e-400",
                               "123456789012345678901234567890.5", "1.00000000000000000001"}) {
        const std::string text = refusal(json(R"({"type": "number", "minimum": )" + std::string(number) + "}"));
        EXPECT_NE(text.find("'minimum': " + std::string(number)), std::string::npos) << text;
    }
    for (const char* number : {"18446744073709551615", "-9223372036854775808", "0.1", "1e20", "1.50", "-0.0", "0e5",
                               "100000000000000000000", "2.5E+3"})
        EXPECT_EQ(refusal(json(R"({"type": "number", "minimum": )" + std::string(number) + "}")), "") << number;
    EXPECT_NE(refusal(json(R"({"enum": [1, 9007199254740993.0]})")).find("'enum': 900"), std::string::npos);
}

// Each takes minutes where what it repeats is not paid for.
TEST(SchemaSoundness, RepeatedLookingAtALargeSchemaEndsWithTheWork) {
    const auto list = [](size_t count, const std::function<std::string(size_t)>& each) {
        std::string out;
        for (size_t i = 0; i < count; ++i) out += (i ? "," : "") + each(i);
        return out;
    };
    const auto refers = [&](size_t count, const std::string& name) {  // members that refer to it
        return list(count,
                    [&](size_t i) { return "\"" + std::to_string(i) + R"(": {"$ref": "#/$defs/)" + name + "\"}"; });
    };
    const std::string trues = list(40'000, [](size_t) { return "true"; });
    EXPECT_NE(
        refusal(json(R"({"properties": {)" + refers(1900, "t") + R"(}, "$defs": {"t": {"allOf": [)" + trues + "]}}}"))
            .find("more than 1000 schemas"),
        std::string::npos);
    const std::string texts = list(9000, [](size_t i) { return "\"" + std::to_string(i) + "\""; });
    const std::string numbers = list(9000, [](size_t i) { return std::to_string(i); });
    EXPECT_NE(refusal(json(R"({"oneOf": [{"enum": [)" + texts + R"(]}, {"type": ["string", "integer"], "enum": [)" +
                           numbers + "]}]}"))
                  .find("steps"),
              std::string::npos);
    EXPECT_NE(refusal(json(R"({"properties": {)" + refers(1900, "e") +
                           R"(}, "$defs": {"e": {"type": "integer", "enum": [)" + texts + "]}}}"))
                  .find("steps"),
              std::string::npos);
    const std::string names = list(1900, [](size_t i) { return "\"n" + std::to_string(i) + R"(": {})"; });
    std::string joined = R"({"$defs": {"p": {"properties": {)" + names + R"(}}}, "items": {"properties": {)";
    joined += list(50, [](size_t i) {
        return "\"" + std::to_string(i) + R"(": {"allOf": [{"minProperties": 0})" + [] {
            std::string s;
            for (int k = 0; k < 50; ++k) s += R"(,{"$ref": "#/$defs/p"})";
            return s;
        }() + "]}";
    });
    EXPECT_NE(refusal(json(joined + "}}}")).find("steps"), std::string::npos);
}

}  // namespace
}  // namespace patchbay::grammar::testing::schema_soundness_test
