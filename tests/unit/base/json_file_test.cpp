#include "base/json_file.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace patchbay::json_file_test {
namespace {

TEST(JsonFile, ReadsWhatIsWellFormed) {
    const auto j = parse_json(R"({"a": [1, 2.5, "x", null, true]})", "f.json");
    ASSERT_TRUE(j) << j.error();
    EXPECT_EQ((*j)["a"][1], 2.5);
}

TEST(JsonFile, ADocumentIsEmptiedWithAllItsParts) {
    auto j = parse_json(R"({"a": [1, {"b": [[], {}, "x"]}], "c": null})", "f.json");
    ASSERT_TRUE(j) << j.error();
    { const EmptiesJson empties(*j); }
    EXPECT_EQ(*j, nlohmann::json::object());
    nlohmann::json number = 4;
    { const EmptiesJson empties(number); }
    EXPECT_EQ(number, 4);
}

TEST(JsonFile, AFaultHasFileLineAndColumn) {
    const auto j = parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "f.json");
    ASSERT_FALSE(j);
    EXPECT_TRUE(j.error().starts_with("f.json:3:")) << j.error();
}

TEST(JsonFile, DepthAndSizeHaveLimits) {
    const std::string deep = std::string(100, '[') + std::string(100, ']');
    EXPECT_FALSE(parse_json(deep, "f.json"));
    EXPECT_TRUE(parse_json(deep, "f.json", {.depth = 200}));
    EXPECT_FALSE(parse_json("[1, 2, 3, 4, 5]", "f.json", {.bytes = 4}));
}

TEST(JsonFile, EveryCutOfATextIsAFaultAndNotACrash) {
    const std::string whole = R"({"a": {"b": ["\u00e9", -1.5e3, false]}, "c": null})";
    for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(parse_json(whole.substr(0, n), "f.json")) << n;
}

TEST(JsonFile, WhatIsNoFileIsSaid) {
    const auto j = read_json_file("/no/such/file.json");
    ASSERT_FALSE(j);
    EXPECT_NE(j.error().find("/no/such/file.json"), std::string::npos) << j.error();
    EXPECT_FALSE(read_json_file("/")); // a folder
}

}  // namespace
}  // namespace patchbay::json_file_test
