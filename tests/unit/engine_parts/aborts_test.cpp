// Requests that were aborted within a step.
#include "engine/loop/aborts.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::aborts_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Aborts, AreOfAllSequencesOfTheirRequest) {
    const auto first = sequence(1, 4), second = sequence(2, 4), other = sequence(3, 4);
    second->group = 1;
    Aborts part;
    EXPECT_FALSE(part.has(first->group));
    part.add(1);
    EXPECT_TRUE(part.has(first->group));
    EXPECT_TRUE(part.has(second->group)) << "it is one of its outputs";
    EXPECT_FALSE(part.has(other->group));
}

TEST(Aborts, AreTakenOnceInTheirOrder) {
    const auto s = sequence(5, 4);
    Aborts part;
    part.add(5);
    part.add(2);
    EXPECT_THAT(part.take(), ElementsAre(5, 2));
    EXPECT_FALSE(part.has(s->group));
    EXPECT_THAT(part.take(), IsEmpty());
}

}  // namespace
}  // namespace patchbay::engine::testing::aborts_test
