#include "grammar/schema_one_of.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace patchbay::grammar::schema_one_of_test {
namespace {

// How many schemas hold in each branch: itself, and the negations of those that it may fit besides.
std::vector<size_t> sizes_of(const char* schema) {
    const Json root = Json::parse(schema);
    const SchemaResolver resolver(root);
    const MadeSchemas made;
    const auto branches = OneOf(resolver, made).branches(resolver.root());
    std::vector<size_t> out;
    if (branches)
        for (const SchemaSources& branch : *branches) out.push_back(branch.size());
    return out;
}

using Sizes = std::vector<size_t>;

TEST(OneOfBranches, NeedNoNegationWhereTheyAreDisjoint) {
    EXPECT_EQ(sizes_of(R"({"oneOf": [{"type": "string"}, {"type": "integer"}]})"), (Sizes{1, 1}));
    EXPECT_EQ(sizes_of(R"({"oneOf": [{"const": 1}, {"enum": [2, 3]}]})"), (Sizes{1, 1}));
    EXPECT_EQ(sizes_of(R"({"oneOf": [{"type": "integer", "maximum": 1}, {"type": "integer", "minimum": 2}]})"),
              (Sizes{1, 1}));
    EXPECT_EQ(sizes_of(R"({"oneOf": [
                  {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "a"}}},
                  {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "b"}}}]})"),
              (Sizes{1, 1}));
}

TEST(OneOfBranches, NegateThoseThatTheyMayFitBesides) {
    EXPECT_EQ(sizes_of(R"({"oneOf": [{"minimum": 1}, {"maximum": 5}, {"type": "string"}]})"), (Sizes{3, 3, 3}));
    EXPECT_EQ(sizes_of(R"({"oneOf": [{"type": "string"}, {"type": "string", "minLength": 2}, {"type": "null"}]})"),
              (Sizes{2, 2, 1}));
}

TEST(OneOfBranches, LookWhetherAPatternNamesARequiredMember) {
    const std::string closed = R"({"type": "object", "additionalProperties": false)";
    const std::string first = R"({"oneOf": [{"type": "object", "required": ["ab"],
                                             "properties": {"ab": {"type": "integer"}}}, )" + closed;
    EXPECT_EQ(sizes_of((first + "}]}").c_str()), (Sizes{1, 1}));
    EXPECT_EQ(sizes_of((first + R"(, "patternProperties": {"^ab$": {"type": "integer"}}}]})").c_str()), (Sizes{2, 2}));
}

TEST(OneOfBranches, FollowReferences) {
    EXPECT_EQ(sizes_of(R"({"oneOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": {"type": "string"}}})"),
              (Sizes{1, 1}));
}

}  // namespace
}  // namespace patchbay::grammar::schema_one_of_test
