// The ranks of a device that computes nothing.
#include <gtest/gtest.h>

#include "execution/start_ranks.hpp"

namespace patchbay::execution::testing::simulated_ranks_test {
namespace {

TEST(SimulatedRanks, AgreeWithTheOneThatIsThere) {
    runner::SimulatedRanks ranks(4);
    EXPECT_EQ(ranks.wire().rank, 0u);
    EXPECT_EQ(ranks.wire().size, 4u);
    EXPECT_EQ(*ranks.agree_blocks(37), 37u);
    ranks.watch([] { ADD_FAILURE() << "none of them fails"; });
    EXPECT_TRUE(ranks.check());
}

TEST(SimulatedRanks, AreAllInThisProcess) {
    OtherRanks others;
    EXPECT_EQ(others.get(), nullptr);
    others.simulated = std::make_unique<runner::SimulatedRanks>(4);
    EXPECT_EQ(others.get(), others.simulated.get());
    EXPECT_EQ(others.names(4).size(), 1u);
}

}  // namespace
}  // namespace patchbay::execution::testing::simulated_ranks_test
