#include "grammar/counted_parts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grammar/machine.hpp"

namespace patchbay::grammar::counted_parts_test {
namespace {

using Needed = JoinedPart::Needed;
using Texts = std::vector<std::string>;

// Of "a", "b" and "c" in order, joined by commas, where "b" is always there: the texts with so many of them.
Texts with(CountRange count) {
    Rules rules;
    const std::vector<JoinedPart> parts{{rules.bytes("a"), Needed::kMaybe},
                                        {rules.bytes("b"), Needed::kAlways},
                                        {rules.bytes("c"), Needed::kMaybe}};
    const RuleId root = rules.declare("root");
    const auto all = counted_parts(rules, rules.bytes(","), parts, count, "#");
    if (!all) return {all.error()};
    rules.define(root, *all);
    Work work(1'000'000);
    const auto automaton = Automaton::compile(rules, root, work);
    if (!automaton) return {automaton.error()};
    Machine machine(*automaton);
    Texts out;
    for (const char* text : {"", "a", "b", "c", "a,b", "b,c", "a,c", "b,a", "a,b,c"}) {
        ConfigId at = machine.of({automaton->start(), 0});
        for (const char* byte = text; *byte; ++byte) at = machine.step(at, static_cast<uint8_t>(*byte));
        if (at != kDead && machine.ends(at)) out.emplace_back(text);
    }
    return out;
}

TEST(CountedParts, AreInOrderAndAsManyAsTheRangeAllows) {
    EXPECT_EQ(with({}), (Texts{"b", "a,b", "b,c", "a,b,c"}));
    EXPECT_EQ(with({2, kUnbounded}), (Texts{"a,b", "b,c", "a,b,c"}));
    EXPECT_EQ(with({1, 2}), (Texts{"b", "a,b", "b,c"}));
    EXPECT_EQ(with({2, 2}), (Texts{"a,b", "b,c"}));
    EXPECT_EQ(with({3, 3}), (Texts{"a,b,c"}));
}

TEST(CountedParts, AreRefusedWhereCountingThemTakesTooManyRules) {
    Rules rules;
    const std::vector<JoinedPart> parts(200, {rules.bytes("a"), Needed::kMaybe});
    const auto refused = counted_parts(rules, rules.bytes(","), parts, {100, kUnbounded}, "#/place");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), "#/place: too many members or values to count them (200)");
}

}  // namespace
}  // namespace patchbay::grammar::counted_parts_test
