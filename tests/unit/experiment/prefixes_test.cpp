#include "experiment/prefixes.hpp"

#include <gmock/gmock.h>

#include <map>

namespace patchbay::experiment::prefixes_test {
namespace {

const Draws kDraws(3, 0);

RandomIds any_ids() { return *RandomIds::open(nullptr, 1000); }

TEST(Prefixes, NoSessionHasOneWhereThereAreNone) {
    for (const PrefixSource& prefixes : {PrefixSource(), PrefixSource(SharedPrefixes{.number = 0})}) {
        EXPECT_FALSE(prefixes.number(kDraws, 0));
        EXPECT_EQ(prefixes.length(kDraws, 0), 0u);
        EXPECT_TRUE(prefixes.tokens(kDraws, 0, any_ids()).empty());
    }
}

TEST(Prefixes, SessionsOfTheSameNumberBeginWithTheSameTokens) {
    const PrefixSource prefixes({.number = 3, .tokens = UniformLength{5, 50}, .exponent = 0});
    std::map<uint32_t, TokenIds> by_number;
    for (uint32_t s = 0; s < 100; ++s) {
        const auto number = prefixes.number(kDraws, s);
        ASSERT_TRUE(number);
        const TokenIds tokens = prefixes.tokens(kDraws, s, any_ids());
        EXPECT_EQ(tokens.size(), prefixes.length(kDraws, s));
        EXPECT_EQ(by_number.emplace(*number, tokens).first->second, tokens);
    }
    EXPECT_EQ(by_number.size(), 3u);
    EXPECT_NE(by_number.begin()->second, by_number.rbegin()->second);
}

TEST(Prefixes, AShareOfTheSessionsHasNone) {
    const PrefixSource prefixes({.number = 3, .tokens = FixedLength{5}, .share = 0.25});
    uint32_t with = 0;
    for (uint32_t s = 0; s < 4000; ++s) with += prefixes.number(kDraws, s).has_value();
    EXPECT_NEAR(with, 1000, 150);
}

}  // namespace
}  // namespace patchbay::experiment::prefixes_test
