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

// Between masks it is exchanged when it has grown too large: a single one must not take all memory before that.
TEST(Machines, FaultWhereTheyTakeTwiceTheirLimit) {
    std::string others; // so that each byte is a class of its own
    for (int byte = 'a'; byte <= 'z'; ++byte) others += std::string(" | \"") + static_cast<char>(byte) + "\" [a-" +
                                                        static_cast<char>(byte) + "] \"!\"";
    for (int byte = 'A'; byte <= 'Z'; ++byte) others += std::string(" | \"") + static_cast<char>(byte) + "\" [A-" +
                                                        static_cast<char>(byte) + "] \"?\"";
    const auto automaton = compile(ebnf(R"x(root ::= "(" root ")" | "[" root "]" | "{" root "}")x" + others));
    ASSERT_TRUE(automaton) << automaton.error();
    Machine machine(*automaton);
    const std::string brackets = "([{";
    uint64_t steps = 0;
    for (uint64_t way = 0; machine.budget().fault().empty() && way < 100; ++way) {
        ConfigId at = machine.of({automaton->start(), 0});
        for (uint64_t depth = 0, rest = way; depth < 50'000 && at != kDead; ++depth, rest /= 3, ++steps) {
            machine.budget().refill();
            at = machine.step(at, static_cast<uint8_t>(brackets[rest % 3]));
        }
    }
    EXPECT_EQ(machine.budget().fault(), "the grammar is too ambiguous here: a mask takes more than 128 MiB");
    EXPECT_GT(machine.bytes(), 2 * Machine::kMaxBytes);
    EXPECT_LT(machine.bytes(), 2 * Machine::kMaxBytes + 10'000);
}

}  // namespace
}  // namespace patchbay::grammar::testing::machine_test
