// Settings against a schema: what fits, and what is said of what does not.
#include "host/schema.hpp"

#include "unit/host/host_fixture.hpp"

namespace patchbay::host::schema_test {
namespace {

const ParamManifest kBool{"eager", "bool", false, "true", {}, {}, {}, "", "whether to"};
const ParamManifest kInt{"window", "int", false, "16", 1.0, 64.0, {}, "tokens", "how far"};
const ParamManifest kFloat{"ageing", "float", true, "0.5", 0.0, std::nullopt, {}, "", "how much"};
const ParamManifest kText{"word", "string", false, std::nullopt, {}, {}, {}, "", "what to say"};
const ParamManifest kEnum{"order", "enum", false, "up", {}, {}, {"up", "down"}, "", "which way"};

ComponentManifest component() {
    ComponentManifest c;
    c.kind = "scheduler";
    c.name = "mine";
    c.params = {kBool, kInt, kFloat, kText, kEnum};
    return c;
}

std::string said(const ParamManifest& p, std::string_view value) { return check_value(p, value).value_or("fits"); }

TEST(Schema, ValuesOfEachTypeFit) {
    for (const char* v : {"true", "false"}) EXPECT_EQ(said(kBool, v), "fits") << v;
    for (const char* v : {"1", "64", "33"}) EXPECT_EQ(said(kInt, v), "fits") << v;
    for (const char* v : {"0", "1e300", "0.25"}) EXPECT_EQ(said(kFloat, v), "fits") << v;
    for (const char* v : {"", "any text: [at] all", "\xff"}) EXPECT_EQ(said(kText, v), "fits") << v;
    for (const char* v : {"up", "down"}) EXPECT_EQ(said(kEnum, v), "fits") << v;
}

TEST(Schema, ValuesOfAnotherTypeDoNot) {
    for (const char* v : {"yes", "True", "1", ""})
        EXPECT_EQ(said(kBool, v), "'eager' is '" + std::string(v) + "', expected true or false");
    for (const char* v : {"1.5", "16x", " 16", "0x10", "", "99999999999999999999"})
        EXPECT_EQ(said(kInt, v), "'window' is '" + std::string(v) + "', expected a whole number");
    for (const char* v : {"much", "1,5", "0.5s", ""})
        EXPECT_EQ(said(kFloat, v), "'ageing' is '" + std::string(v) + "', expected a number");
    EXPECT_EQ(said(kEnum, "dwon"), "'order' is 'dwon', expected one of up, down (did you mean 'down'?)");
    EXPECT_EQ(said(kEnum, "sideways"), "'order' is 'sideways', expected one of up, down");
}

TEST(Schema, NumbersOutOfRangeSayTheRangeAndTheUnit) {
    EXPECT_EQ(said(kInt, "0"), "'window' is 0, expected 1 to 64 tokens");
    EXPECT_EQ(said(kInt, "65"), "'window' is 65, expected 1 to 64 tokens");
    EXPECT_EQ(said(kFloat, "-0.5"), "'ageing' is -0.5, expected 0 to inf");
    ParamManifest wide = kFloat;
    wide.max = 1e9;
    EXPECT_EQ(said(wide, "2e9"), "'ageing' is 2000000000, expected 0 to 1000000000");
    for (const char* v : {"nan", "inf"})
        EXPECT_EQ(said(kFloat, v), "'ageing' is " + std::string(v) + ", expected 0 to inf");
}

TEST(Schema, AllFaultsAreNamedWithTheirKeys) {
    const auto faults = check_settings(component(), {{"agein", "1"}, {"colour", "red"}, {"window", "0"}});
    std::vector<std::string> keys, texts;
    for (const SettingFault& f : faults) {
        keys.push_back(f.key);
        texts.push_back(f.text);
    }
    EXPECT_THAT(keys, ::testing::ElementsAre("agein", "colour", "window", "word"));
    EXPECT_THAT(texts, ::testing::ElementsAre("unknown key 'agein' of scheduler 'mine' (did you mean 'ageing'?)",
                                              "unknown key 'colour' of scheduler 'mine'",
                                              "'window' is 0, expected 1 to 64 tokens",
                                              "scheduler 'mine' needs 'word': what to say"));
}

TEST(Schema, AComponentWithoutParametersSaysThatItHasNone) {
    ComponentManifest c = component();
    c.params.clear();
    const auto faults = check_settings(c, {{"ageing", "1"}});
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].text, "unknown key 'ageing' of scheduler 'mine' (it has none)");
    EXPECT_TRUE(check_settings(c, {}).empty());
}

TEST(Schema, DefaultsFillWhatIsNotSet) {
    const Settings complete = with_defaults(component(), {{"word", "hello"}, {"window", "8"}});
    EXPECT_EQ(complete,
              (Settings{{"eager", "true"}, {"window", "8"}, {"ageing", "0.5"}, {"word", "hello"}, {"order", "up"}}));
}

}  // namespace
}  // namespace patchbay::host::schema_test
