#include "experiment/capacity.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "experiment/pace.hpp"
#include "experiment/shares.hpp"

namespace patchbay::experiment::capacity_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CapacitySearch search(double lowest, double highest, double precision = 0.05) {
    return {.slo = {100, {}, {}}, .share = 0.9, .lowest = lowest, .highest = highest, .precision = precision};
}

// As many requests keep the objective as a system of this capacity has them do: 90 % at it, fewer beyond.
RunSummary run_at(const RunSlot& slot, double capacity) {
    RunSummary run;
    run.variant = slot.variant;
    run.repeat = slot.repeat;
    run.rate = slot.rate;
    run.objective = std::min(1.0, 0.9 * capacity / *slot.rate);
    return run;
}

TEST(RateSearch, FindsTheHighestRateThatKeepsTheObjective) {
    for (const double capacity : {1.7, 10.0, 63.0}) {
        RateSearch s(search(1, 64));
        int runs = 0;
        while (const auto rate = s.next()) {
            s.add(*rate, *rate <= capacity);
            runs += 1;
        }
        EXPECT_LE(s.found(), capacity);
        EXPECT_GE(s.found(), capacity / 1.05);
        EXPECT_LE(runs, 8);
        EXPECT_FALSE(s.is_beyond());
    }
}

TEST(RateSearch, SaysWhereTheAnswerLiesOutsideOfItsRates) {
    RateSearch all(search(1, 64)), none(search(1, 64)), broken(search(1, 64));
    while (const auto rate = all.next()) all.add(*rate, true);
    EXPECT_EQ(all.found(), 64);
    EXPECT_TRUE(all.is_beyond());
    while (const auto rate = none.next()) none.add(*rate, false);
    EXPECT_EQ(none.found(), 0);
    broken.add(*broken.next(), true);
    broken.fail();
    EXPECT_FALSE(broken.next());
    EXPECT_TRUE(std::isnan(broken.found()));
}

TEST(RateSearch, AShareIsKeptByJustAsManyRequests) {
    for (uint32_t permille = 1; permille <= 1000; ++permille) {
        CapacitySearch s = search(1, 64);
        s.share = *share_of(std::to_string(permille / 10) + "." + std::to_string(permille % 10) + "%");
        RunSummary run;
        run.objective = permille / 1000.0;
        EXPECT_TRUE(keeps(s, run)) << permille;
        run.objective = (permille - 0.001) / 1000.0; // of a million requests one less
        EXPECT_FALSE(keeps(s, run)) << permille;
    }
}

TEST(Capacities, AreOfEachVariantAndRepeat) {
    const double truth[2][3] = {{4, 5, 6}, {20, 90, 0.5}};
    size_t rounds = 0;
    const auto found = find_capacities(search(1, 64), {"a", "b"}, 3, 1, [&](const std::vector<RunSlot>& slots) {
        std::vector<RunSummary> out;
        rounds += 1;
        for (const RunSlot& s : slots) out.push_back(run_at(s, truth[s.variant][s.repeat]));
        return Result<std::vector<RunSummary>>(std::move(out));
    });
    ASSERT_TRUE(found);
    EXPECT_LE(rounds, 8u) << "all searches go forward together";
    for (size_t r = 0; r < 3; ++r) EXPECT_NEAR(found->found[0][r], truth[0][r], 0.05 * truth[0][r]);
    EXPECT_NEAR(found->found[1][0], 20, 1);
    EXPECT_EQ(found->found[1][1], 64);
    EXPECT_EQ(found->found[1][2], 0);
    EXPECT_THAT(found->beyond[0], ElementsAre(false, false, false));
    EXPECT_THAT(found->beyond[1], ElementsAre(false, true, false));
    EXPECT_THAT(found->notices,
                ElementsAre("capacity: the objective was kept at the highest rate of the search, 64.0 req/s, so that "
                            "the capacity is at least that and not judged: b in 1 of 3 repeats",
                            "capacity: the objective was not kept at the lowest rate of the search, 1.00 req/s, so "
                            "that the capacity counts as 0, which is no more than a bound, and is not judged: b in 1 "
                            "of 3 repeats"));
}

TEST(Capacities, HaveNoNumberWhereARunIsNotValidOrTheSearchDidNotEnd) {
    const auto found = find_capacities(search(1, 64), {"a", "b"}, 2, 1, [&](const std::vector<RunSlot>& slots) {
        std::vector<RunSummary> out;
        for (const RunSlot& s : slots) {
            out.push_back(run_at(s, 7));
            if (s.variant == 0 && s.repeat == 1) out.back().faults = {"it crashed"};
        }
        if (slots.size() == 3) out.pop_back(); // interrupted
        return Result<std::vector<RunSummary>>(std::move(out));
    });
    ASSERT_TRUE(found);
    EXPECT_TRUE(std::isnan(found->found[0][1]));
    EXPECT_TRUE(std::isnan(found->found[1][0]));
    EXPECT_THAT(found->notices, IsEmpty());
}

TEST(PacedRequests, ArriveAsManyTimesAsFast) {
    PlannedRequest first, second, turn;
    first.arrival_ns = 100;
    second.arrival_ns = 1'000'000'000;
    second.deadline_ns = 1'000'000'500;
    turn.follows = 0;
    const GivenRequests given({first, second, turn});
    const PacedRequests paced(given, 2);
    EXPECT_EQ(paced.arrival_ns(1), 500'000'000u);
    EXPECT_EQ(paced.make(1).arrival_ns, 500'000'000u);
    EXPECT_EQ(paced.make(1).deadline_ns, 500'000'500u) << "as long after the arrival";
    EXPECT_EQ(paced.follows(2), 0u);
    EXPECT_DOUBLE_EQ(pace_of(PoissonArrivals{4}, given, 8), 2);
    EXPECT_DOUBLE_EQ(pace_of(BurstArrivals{6, 2}, given, 9), 3);
    EXPECT_DOUBLE_EQ(pace_of(RampArrivals{}, given, 8), 4) << "two sessions in a second";
    EXPECT_DOUBLE_EQ(pace_of(TraceArrivals{}, given, 8), 8) << "the second one comes a second after the first";
}

}  // namespace
}  // namespace patchbay::experiment::capacity_test
