#include "grammar/mask_budget.hpp"

#include <gtest/gtest.h>

#include <string>

#include "grammar/stacks.hpp"

namespace patchbay::grammar::mask_budget_test {
namespace {

TEST(MaskBudgets, EndInAFaultUntilItIsCleared) {
    MaskBudget budget;
    budget.refill(3);
    EXPECT_TRUE(budget.spend(2));
    EXPECT_TRUE(budget.spend(1));
    EXPECT_TRUE(budget.fault().empty());
    EXPECT_FALSE(budget.spend(1));
    EXPECT_NE(budget.fault().find("more than 20000000 steps"), std::string::npos);
    budget.refill();
    EXPECT_FALSE(budget.spend(0));
    budget.clear_fault();
    EXPECT_TRUE(budget.spend(1));
}

TEST(MaskBudgets, KeepTheFirstFault) {
    MaskBudget budget;
    budget.set_fault("first");
    budget.set_fault("second");
    EXPECT_FALSE(budget.spend(0));
    EXPECT_EQ(budget.fault(), "first");
}

TEST(StacksOfStates, HaveOneNumberWhereTheyAreEqual) {
    Stacks stacks;
    const StackId a = stacks.push(7, 0), b = stacks.push(8, a);
    EXPECT_EQ(stacks.push(7, 0), a);
    EXPECT_EQ(stacks.push(8, a), b);
    EXPECT_NE(stacks.push(8, 0), b);
    EXPECT_EQ(stacks.size(), 4u); // with the bottom
    EXPECT_EQ(stacks[b].to, 8u);
    EXPECT_EQ(stacks[b].parent, a);
    EXPECT_EQ(stacks[b].depth, 2u);
    EXPECT_EQ(stacks[0].depth, 0u);
}

}  // namespace
}  // namespace patchbay::grammar::mask_budget_test
