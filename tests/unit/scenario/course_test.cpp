// How far a file is played, without an engine.
#include "scenario/course.hpp"

#include <gtest/gtest.h>

namespace patchbay::scenario::course_test {
namespace {

Step at_line(uint32_t line, decltype(Step::what) what) {
    Step out;
    out.what = std::move(what);
    out.origin.line = line;
    return out;
}

struct Bench {
    Bench() {
        file.steps = {at_line(1, step::Run{2}), at_line(5, step::Wait{1}), at_line(9, step::Drain{3})};
    }
    Scenario file;
    Course course{file};
};

TEST(Course, GoesOnAfterAsManyStepsAsAreToBeRun) {
    Bench b;
    b.course.count_down(step::Run{2});
    EXPECT_EQ(b.course.now().origin.line, 1u);
    b.course.count_down(step::Run{2});
    EXPECT_EQ(b.course.now().origin.line, 5u);
    b.course.advance();
    b.course.advance();
    EXPECT_TRUE(b.course.over());
    EXPECT_EQ(b.course.now().origin.line, 9u) << "the last one";
}

TEST(Course, DrainsForSoManySteps) {
    Bench b;
    EXPECT_TRUE(b.course.count_down(step::Drain{3}));
    EXPECT_TRUE(b.course.count_down(step::Drain{3}));
    EXPECT_TRUE(b.course.count_down(step::Drain{3}));
    EXPECT_FALSE(b.course.count_down(step::Drain{3}));
    b.course.end_drain();
    EXPECT_TRUE(b.course.count_down(step::Drain{3})) << "another drain";
}

TEST(Course, EndsAtItsFirstDifference) {
    Bench b;
    b.course.advance();
    b.course.differ("plan", "a", "b");
    b.course.differ(b.file.steps[2], "output", "c", "d");
    ASSERT_TRUE(b.course.difference());
    EXPECT_EQ(b.course.difference()->what, "plan");
    EXPECT_EQ(b.course.difference()->step, 2u);
    EXPECT_EQ(b.course.difference()->origin.line, 5u);
    EXPECT_TRUE(b.course.over());
    b.course.advance();
    EXPECT_EQ(b.course.now().origin.line, 5u) << "it stays there";
}

TEST(Course, NamesTheStepThatIsMeant) {
    Bench b;
    b.course.differ(b.file.steps[2], "output", "c", "d");
    EXPECT_EQ(b.course.difference()->step, 3u);
    EXPECT_EQ(b.course.difference()->origin.line, 9u);
}

}  // namespace
}  // namespace patchbay::scenario::course_test
