#include "experiment/disturbance.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "experiment/cpu_use.hpp"

namespace patchbay::experiment::disturbance_test {
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

TEST(CpuUse, OfAProcessIsItsUserAndSystemTime) {
    const auto use = process_use_of("812 (a) b (c) S 77 812 700 0 -1 4194560 900 5 1 0 120 30 400 500 20 0 3 0 99\n");
    ASSERT_TRUE(use);
    EXPECT_EQ(use->parent, 77);
    EXPECT_DOUBLE_EQ(use->ticks, 150) << "without that of children that ended";
    EXPECT_FALSE(process_use_of(""));
    EXPECT_FALSE(process_use_of("1 (init) S 0 1"));
}

void work_for(double seconds) { // of CPU time
    const std::clock_t begun = std::clock();
    while (static_cast<double>(std::clock() - begun) < seconds * CLOCKS_PER_SEC) {
    }
}

// What the process that stores the rows takes, and what ranks take, is the experiment's own.
TEST(CpuUse, OfAnExperimentIsThatOfItsProcesses) {
    constexpr double kWork = 0.2;
    int up[2], down[2];
    ASSERT_EQ(pipe(up) | pipe(down), 0);
    const double before = experiment_ticks(0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    work_for(kWork); // both
    if (child == 0) {
        (void)!read(down[0], up, 1); // its parent has worked, too
        const double of_keeper = experiment_ticks(getppid()) - experiment_ticks(0);
        (void)!write(up[1], &of_keeper, sizeof of_keeper);
        (void)!read(down[0], up, 1);
        _exit(0);
    }
    (void)!write(down[1], "", 1);
    double of_keeper = 0;
    ASSERT_EQ(read(up[0], &of_keeper, sizeof of_keeper), static_cast<ssize_t>(sizeof of_keeper));
    const double second = static_cast<double>(sysconf(_SC_CLK_TCK));
    EXPECT_GE(experiment_ticks(0) - before, 1.8 * kWork * second) << "its own and the child's that goes on";
    EXPECT_GE(of_keeper, 0.9 * kWork * second);
    (void)!write(down[1], "", 1);
    waitpid(child, nullptr, 0);
    for (const int fd : {up[0], up[1], down[0], down[1]}) close(fd);
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
                "1 run was disturbed (over 5 % of the CPU time taken by others) and repeated; the repeat was not "
                "disturbed. A quieter machine gives narrower intervals");
    EXPECT_THAT(disturbance_notice(d, {with_share(0.93), replaced}),
                HasSubstr("and repeated; the repeat was disturbed too, up to 93 %. A"));
    EXPECT_THAT(disturbance_notice(d, {with_share(0.3), replaced, with_share(0.2), replaced}),
                HasSubstr("2 runs were disturbed (over 5 % of the CPU time taken by others) and repeated; both repeats "
                          "were disturbed too, up to 30 %. A"));
    const RunSummary loud = with_share(0.93);
    EXPECT_THAT(disturbance_notice(d, {loud, replaced, loud, replaced, loud, replaced}),
                HasSubstr("3 runs were disturbed (over 5 % of the CPU time taken by others) and repeated; all 3 "
                          "repeats were disturbed too, up to 93 %. A"));
    EXPECT_THAT(disturbance_notice(d, {with_share(0.01), replaced, with_share(0.02), replaced}),
                HasSubstr("and repeated; none of the repeats was disturbed. A"));
    EXPECT_THAT(disturbance_notice(d, {with_share(0.3), replaced, with_share(0.02), replaced}),
                HasSubstr("and repeated; 1 of the 2 repeats was disturbed too, up to 30 %. A"));
    EXPECT_THAT(disturbance_notice(d, {with_share(0.3), replaced, with_share(0.2)}),
                HasSubstr("and repeated; 2 of the 2 runs that count were disturbed, up to 30 %. A"))
        << "of one that was not repeated, too";
    RunSummary interrupted = with_share(0.5), invalid = with_share(0.6);
    interrupted.end = RunEnd::kInterrupted;
    invalid.faults = {"it crashed"};
    EXPECT_THAT(disturbance_notice(d, {with_share(0.3), with_share(0.01), interrupted, invalid}),
                HasSubstr("1 of the 2 runs that count was disturbed (over 5 % of the CPU time taken by others), up to "
                          "30 %. A"));
}

TEST(Disturbance, IsNoFaultOfTheAttemptThatDoesNotCount) {
    RunSummary loud = with_share(0.4), crashed = with_share(0.01), alone = crashed;
    EXPECT_FALSE(has_own_faults(loud));
    supersede(loud, with_share(0.02));
    EXPECT_TRUE(loud.superseded);
    EXPECT_THAT(loud.faults, ::testing::ElementsAre("disturbed: 40.0 % of the CPU time went to others; the run was "
                                                    "repeated, and the attempt with 2.00 % counts"));
    EXPECT_FALSE(has_own_faults(loud));
    crashed.faults = {"it crashed", "in a step"};
    crashed.end = RunEnd::kFailed;
    alone = crashed;
    supersede(crashed, with_share(0.4));
    EXPECT_TRUE(crashed.superseded);
    EXPECT_EQ(crashed.faults, alone.faults) << "no more CPU time would have made it count";
    EXPECT_TRUE(has_own_faults(crashed) && has_own_faults(alone));
}

}  // namespace
}  // namespace patchbay::experiment::disturbance_test
