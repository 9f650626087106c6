// What becomes of a draft model's second guesses, and of drafts that are not probable enough.
#include <gmock/gmock.h>

#include "patchbay/sdk/draft_model.hpp"

namespace patchbay::draft_branches_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using Tokens = std::vector<int32_t>;

const float kHalf = std::log(0.5f), kQuarter = std::log(0.25f), kTenth = std::log(0.1f);

std::vector<Tokens> paths(DraftBranches& branches, const Tokens& chain, bool keeps_rest = false) {
    std::vector<Tokens> out;
    branches.each_path(chain, keeps_rest, [&](const Tokens& path) { out.push_back(path); });
    return out;
}

TEST(DraftBranches, LeaveTheChainAtTheLikeliestPlaceFirst) {
    DraftBranches branches;
    branches.note(0, 1, kHalf, Tokens{1, 7, -1}, std::vector<float>{kHalf, kTenth, 0}, 0);
    branches.note(1, 2, kHalf, Tokens{2, 8, 9}, std::vector<float>{kHalf, kQuarter, kTenth}, 0);
    EXPECT_THAT(paths(branches, {1, 2}), ElementsAre(Tokens{1, 8}, Tokens{7}, Tokens{1, 9}))
        << "0.5 * 0.25, 0.1, 0.5 * 0.1";
}

TEST(DraftBranches, KeepWhatFollowsWhereNoGuessKnowsOfTheOneBefore) {
    DraftBranches branches;
    branches.note(0, 1, kHalf, Tokens{7}, std::vector<float>{kTenth}, 0);
    branches.note(2, 3, kHalf, Tokens{9}, std::vector<float>{kTenth}, 0); // the chain ended before it
    EXPECT_THAT(paths(branches, {1, 2}, true), ElementsAre(Tokens{7, 2}, Tokens{1, 2, 9}));
}

TEST(DraftBranches, NeedTheLeastProbability) {
    DraftBranches branches;
    branches.note(0, 1, kHalf, Tokens{7, 8}, std::vector<float>{kQuarter, kTenth}, 0.2f);
    EXPECT_THAT(paths(branches, {1}), ElementsAre(Tokens{7}));
    branches.clear();
    EXPECT_TRUE(paths(branches, {1}).empty());
}

TEST(RestrictToProbable, DropsTheOthersAndTheirShare) {
    std::vector<float> from = {0.5f, 0.3f, 0.15f, 0.05f};
    EXPECT_TRUE(detail::restrict_to_probable(from, 1, 0.2f));
    EXPECT_THAT(from, ElementsAre(FloatEq(0.625f), FloatEq(0.375f), 0, 0));
}

TEST(RestrictToProbable, ATokenBelowIsNoDraft) {
    std::vector<float> from = {0.9f, 0.1f};
    EXPECT_FALSE(detail::restrict_to_probable(from, 1, 0.2f));
    EXPECT_TRUE(detail::restrict_to_probable(from, 1, 0));
    EXPECT_THAT(from, ElementsAre(0.9f, 0.1f)) << "as they were";
}

}  // namespace
}  // namespace patchbay::draft_branches_test
