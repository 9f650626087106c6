#include "experiment/quality.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace patchbay::experiment::quality_test {
namespace {

TEST(Quality, IsComparedWithTheBaselineWindowByWindow) {
    const QualityScores base{{2.0, 3.0, 4.0}, {1, 2, 3, 4}, {{5, 6, 7, 8}, {9, 9}}};
    const QualityScores other{{2.1, 3.1, 4.1}, {1, 2, 0, 4}, {{5, 6, 0, 8}, {9, 9}}};
    const auto results = compare_quality({base, other}, 0);
    ASSERT_EQ(results.size(), 2u);
    EXPECT_NEAR(results[0].perplexity, std::exp(3.0), 1e-9);
    EXPECT_EQ(results[0].ratio, 1);
    EXPECT_NEAR(results[1].ratio, std::exp(0.1), 1e-9);
    EXPECT_NEAR(results[1].interval.low, std::exp(0.1), 1e-6) << "windows differ, their differences do not";
    EXPECT_DOUBLE_EQ(results[1].same_choice, 0.75);
    EXPECT_DOUBLE_EQ(results[1].same_outputs, 0.5);
    EXPECT_DOUBLE_EQ(results[1].same_tokens, 4.0 / 6) << "5, 6 and 9, 9";
    const std::string table = quality_text(results, {"plain", "int8"}, 0);
    EXPECT_THAT(table, ::testing::HasSubstr("plain *  20.1\n"));
    EXPECT_THAT(table,
                ::testing::ContainsRegex("int8 +22.2 +\\+10.5 % \\(\\+10.5 … \\+10.5\\) +75.0 % +50.0 % +66.7 %"));
}

TEST(Quality, OfOneWindowHasNoInterval) {
    const QualityScores base{{2.0}, {1}, {}};
    const auto results = compare_quality({base, base}, 0);
    EXPECT_TRUE(std::isnan(results[1].interval.low));
    EXPECT_EQ(results[1].same_outputs, 1);
}

}  // namespace
}  // namespace patchbay::experiment::quality_test
