// Which rows of a trace are taken.
#include "experiment/traces/row_choice.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace patchbay::experiment::row_choice_test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::vector<int64_t> taken(const TraceOptions& options, const std::vector<int64_t>& seconds) {
    RowChoice choice(options);
    std::vector<int64_t> out;
    for (const int64_t s : seconds)
        if (choice.takes(s * kSecond)) out.push_back(s);
    return out;
}

TEST(RowChoice, TakesAllByDefault) {
    EXPECT_THAT(taken({}, {5, 6, 6, 9}), testing::ElementsAre(5, 6, 6, 9));
}

TEST(RowChoice, TimesCountFromTheFilesFirstRow) {
    EXPECT_THAT(taken({.from_s = 1, .until_s = 4}, {5, 6, 8, 9}), testing::ElementsAre(6, 8));
    EXPECT_THAT(taken({.from_s = 3}, {5, 6, 8, 9}), testing::ElementsAre(8, 9)) << "until 0: all";
}

TEST(RowChoice, SkipsRowsOfTheTimeThatIsWanted) {
    EXPECT_THAT(taken({.skip = 1, .from_s = 1}, {5, 6, 8, 9}), testing::ElementsAre(8, 9));
}

TEST(RowChoice, RowsWithoutATimeAreOnlySkipped) {
    RowChoice choice({.skip = 2, .from_s = 100});
    EXPECT_FALSE(choice.saw_any());
    EXPECT_FALSE(choice.takes_without_time());
    EXPECT_FALSE(choice.takes_without_time());
    EXPECT_TRUE(choice.takes_without_time());
    EXPECT_TRUE(choice.saw_any());
}

TEST(RowChoice, TimesMayNotGoBackBelowThoseThatWereLeftOut) {
    RowChoice choice({.until_s = 1});
    EXPECT_TRUE(choice.is_in_order(-7)) << "the first";
    EXPECT_TRUE(choice.takes(2 * kSecond));
    EXPECT_FALSE(choice.takes(9 * kSecond)) << "after until_s";
    EXPECT_TRUE(choice.is_in_order(9 * kSecond));
    EXPECT_FALSE(choice.is_in_order(9 * kSecond - 1));
}

}  // namespace
}  // namespace patchbay::experiment::row_choice_test
