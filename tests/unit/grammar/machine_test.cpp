#include "grammar/machine.hpp"

#include <string>

#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::machine_test {
namespace {

TEST(Machines, PayForTheEdgesThatTheyLookAt) {
    // Its sets of states would be too many, so that one state has the edges of all alternatives.
    std::string pattern = "[ab]*a[ab]{12}";
    for (int i = 0; i < 100; ++i) pattern += "|x" + std::to_string(i);
    const auto automaton = compile(regex(pattern));
    ASSERT_TRUE(automaton) << automaton.error();
    Machine machine(*automaton);
    const ConfigId start = machine.of({automaton->start(), 0});
    machine.budget().refill(100);
    EXPECT_EQ(machine.step(start, '!'), kDead);
    EXPECT_FALSE(machine.budget().fault().empty());
    machine.budget().clear_fault();
    machine.budget().refill();
    EXPECT_NE(machine.step(start, 'x'), kDead);
    EXPECT_TRUE(machine.budget().fault().empty());
}

}  // namespace
}  // namespace patchbay::grammar::testing::machine_test
