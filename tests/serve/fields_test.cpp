#include "serve/fields.hpp"

#include <gmock/gmock.h>

#include "serve/error_reply.hpp"

namespace patchbay::serve::fields_test {
namespace {

TEST(Fields, ReadWhatIsThereAndKeepTheFirstFault) {
    const Json body = Json::parse(R"({"a": 1, "b": null, "c": [1, 2], "d": "x", "e": 3.5, "f": true, "g": 300})");
    Fields f(body, "outer.");
    int a = 0, b = 7;
    std::vector<int32_t> c;
    std::optional<std::string> d, missing;
    float e = 0;
    bool flag = false;
    f.read("a", a);
    f.read("b", b);
    f.read("c", c);
    f.read("d", d);
    f.read("missing", missing);
    f.read("e", e);
    f.read("f", flag);
    EXPECT_FALSE(f.refusal());
    EXPECT_EQ(a, 1);
    EXPECT_EQ(b, 7); // null counts as absent
    EXPECT_EQ(c, (std::vector<int32_t>{1, 2}));
    EXPECT_EQ(d, "x");
    EXPECT_FALSE(missing);
    EXPECT_FLOAT_EQ(e, 3.5f);
    EXPECT_TRUE(flag);
    const Json whole = Json::parse(R"({"a": 4.0, "b": -2.0, "c": 4.5, "d": 1e300, "e": 300.0})");
    int b2 = 0;
    Fields(whole).read("a", a);
    Fields(whole).read("b", b2);
    EXPECT_EQ(a, 4); // as some programs write whole numbers
    EXPECT_EQ(b2, -2);
    for (const char* name : {"c", "d", "e"}) {
        Fields other(whole);
        uint8_t none = 7;
        other.read(name, none);
        EXPECT_TRUE(other.refusal()) << name;
        EXPECT_EQ(none, 7);
    }
    uint8_t small = 5;
    f.read("g", small);
    f.read("d", a);
    ASSERT_TRUE(f.refusal());
    EXPECT_EQ(f.refusal()->param, "outer.g");
    EXPECT_EQ(f.refusal()->failure.text, "outer.g: got 300, expected a whole number of 0 to 255");
    EXPECT_EQ(small, 5);
}

TEST(ErrorReplies, HaveTheStatusOfTheCode) {
    const std::pair<StatusCode, unsigned> expected[] = {
        {StatusCode::kInvalid, 400},   {StatusCode::kNotFound, 404},    {StatusCode::kUnsupported, 400},
        {StatusCode::kExhausted, 429}, {StatusCode::kUnavailable, 503}, {StatusCode::kFailed, 500},
        {StatusCode::kInternal, 500}};
    for (const auto& [code, status] : expected) {
        const HttpResponse reply = error_reply(fail(code, "why"), "field");
        EXPECT_EQ(reply.status, status);
        const Json error = Json::parse(reply.body)["error"];
        EXPECT_EQ(error["message"], "why");
        EXPECT_EQ(error["param"], "field");
        EXPECT_EQ(error["code"], name_of(code));
        EXPECT_EQ(std::ranges::count(reply.headers, "Retry-After", &std::pair<std::string, std::string>::first),
                  status == 429 || status == 503);
    }
}

}  // namespace
}  // namespace patchbay::serve::fields_test
