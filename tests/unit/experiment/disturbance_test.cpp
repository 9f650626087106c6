#include "experiment/disturbance.hpp"

#include <gmock/gmock.h>

#include "experiment/cpu_use.hpp"

namespace patchbay::experiment {
namespace {

using ::testing::HasSubstr;

TEST(CpuUse, IsTheShareOfTheTimeBetweenTwoReadings) {
    const auto before = cpu_times_of("cpu  1000 0 200 5000 100 10 20 30 0 0\ncpu0 1 2 3 4\n");
    const auto after = cpu_times_of("cpu  1500 0 300 5200 100 10 20 230 0 0\n");
    ASSERT_TRUE(before && after);
    const CpuUse use = use_between(*before, *after, 400); // of 1,000 ticks 200 idle and 200 stolen
    EXPECT_DOUBLE_EQ(use.steal, 0.2);
    EXPECT_DOUBLE_EQ(use.others, 0.2);
    EXPECT_EQ(use_between(*before, *after, 700).others, 0) << "own time may be more than what is left of whole ticks";
    EXPECT_EQ(use_between(*before, *before, 0).steal, 0);
    EXPECT_FALSE(cpu_times_of("cpu0 1 2 3 4 5 6 7 8"));
    EXPECT_FALSE(cpu_times_of("cpu 1 2 3"));
}

RunSummary with_share(double share) {
    RunSummary r;
    r.others_share = share;
    return r;
}

TEST(Disturbance, OfTwoAttemptsTheQuieterOneCountsAndAValidOneRather) {
    EXPECT_TRUE(is_disturbed({.limit = 0.05}, with_share(0.06)));
    EXPECT_FALSE(is_disturbed({.limit = 0.05}, with_share(0.05)));
    EXPECT_FALSE(is_disturbed({.limit = 1}, with_share(1)));
    EXPECT_TRUE(second_counts(with_share(0.3), with_share(0.2)));
    EXPECT_FALSE(second_counts(with_share(0.2), with_share(0.3)));
    RunSummary invalid = with_share(0.1);
    invalid.faults = {"it crashed"};
    EXPECT_FALSE(second_counts(with_share(0.3), invalid));
}

TEST(Disturbance, IsNotedWithWhatWasDoneAboutIt) {
    const Disturbance d{.limit = 0.05};
    EXPECT_EQ(disturbance_notice(d, {with_share(0.01)}), "");
    RunSummary replaced = with_share(0.4);
    replaced.superseded = true;
    EXPECT_THAT(disturbance_notice(d, {with_share(0.01), replaced}),
                HasSubstr("of 1 runs, which were repeated once: a quieter machine"));
    EXPECT_THAT(disturbance_notice(d, {with_share(0.3), replaced, with_share(0.2)}),
                HasSubstr("repeated once; of 2 of 2 runs that count, 30.0 % at most"));
    EXPECT_EQ(superseded_reason(replaced, with_share(0.02)),
              "disturbed: 40.0 % of the CPU time went to others; the run was repeated, "
              "and the attempt with 2.00 % counts");
}

}  // namespace
}  // namespace patchbay::experiment
