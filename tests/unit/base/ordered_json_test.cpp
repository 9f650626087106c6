#include "base/ordered_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace patchbay::ordered_json_test {
namespace {

using Json = nlohmann::ordered_json;

std::string error_of(std::string_view text, const OrderedJsonLimits& limits = {}) {
    const auto read = parse_ordered_json(text, limits);
    return read ? "" : read.error();
}

TEST(OrderedJson, ReadsWhatTheLibraryReads) {
    std::string many = "{";
    for (int i = 0; i < 100; ++i) many += "\"" + std::to_string(i % 60) + "\":[" + std::to_string(i) + "],";
    for (const std::string& text : {std::string(R"({"b": [1, -2, 2.5, "x\\u00e9", null, true], "a": {"c": {}, "b": []}})"),
                                    std::string(R"({"a": 1, "b": 2, "a": {"c": 3}})"), std::string("18446744073709551615"),
                                    std::string("[[], [[]], {}]"), std::string("\"x\""), many + "\"z\":0}"}) {
        const auto read = parse_ordered_json(text);
        ASSERT_TRUE(read) << text << read.error();
        EXPECT_EQ(read->dump(), Json::parse(text).dump());
    }
}

TEST(OrderedJson, SaysWhatIsWrong) {
    EXPECT_EQ(error_of("[1,]").find("is not JSON: syntax error"), 0u);
    EXPECT_EQ(error_of("1e999").find("is not JSON: number overflow"), 0u);
    const std::string whole = R"({"a": {"b": ["\u00e9", -1.5e3, false]}, "c": null})";
    for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(error_of(whole.substr(0, n)), "") << n;
}

TEST(OrderedJson, HasLimits) {
    EXPECT_EQ(error_of("[[{}]]", {.depth = 3}), "");
    EXPECT_EQ(error_of("[[{}]]", {.depth = 2}), "nests lists and objects more than 2 deep");
    EXPECT_EQ(error_of(R"([{"a": 1, "b": 2}, {"c": 1, "a": 2, "c": 3}])", {.members = 2}), "");
    EXPECT_EQ(error_of(R"({"a": 1, "b": 2, "c": 3})", {.members = 2}), "has an object of more than 2 members");
    EXPECT_NE(error_of(std::string(1'000'000, '[')), ""); // no recursion
}

// Hours, if all members were looked through for each.
TEST(OrderedJson, TakesAsManyMembersAsAVocabularyHasTokens) {
    std::string text = "{";
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < 256 << 10; ++i) text += (text.size() > 1 ? ",\"" : "\"") + std::to_string(i) + "\":1";
    const auto read = parse_ordered_json(text + "}");
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(read->size(), 256u << 10);
    EXPECT_NE(error_of(text + ",\"x\":1}"), "");
}

}  // namespace
}  // namespace patchbay::ordered_json_test
