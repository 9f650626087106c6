#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "experiment/arrivals.hpp"

namespace patchbay::experiment::arrivals_test {
namespace {

using ::testing::ElementsAre;

TEST(Arrivals, FollowTheirProcess) {
    const Draws d(1, 0);
    EXPECT_THAT(arrival_times(AllAtOnce{}, 3, d, {}), ElementsAre(0, 0, 0));
    EXPECT_THAT(arrival_times(DeterministicArrivals{4}, 3, d, {}), ElementsAre(0, 250'000'000, 500'000'000));
    EXPECT_THAT(arrival_times(BurstArrivals{2, 1.5}, 5, d, {}),
                ElementsAre(0, 0, 1'500'000'000, 1'500'000'000, 3'000'000'000));
    const std::vector<uint64_t> trace{3, 2'000'000'003};
    EXPECT_THAT(arrival_times(TraceArrivals{0.5}, 2, d, trace), ElementsAre(0, 1'000'000'000));
}

TEST(Arrivals, OfATraceWithARateAreSoManyASecond) {
    const std::vector<uint64_t> trace{5'000'000'000, 6'000'000'000, 15'000'000'000};
    const Draws d(1, 0);
    TraceArrivals faster;
    faster.rate = 2;
    EXPECT_THAT(arrival_times(faster, 3, d, trace), ElementsAre(0, 100'000'000, 1'000'000'000));
    faster.rate = 0.2; // that of the trace
    EXPECT_THAT(arrival_times(faster, 3, d, trace), ElementsAre(0, 1'000'000'000, 10'000'000'000));
    faster.rate = 7;
    EXPECT_THAT(arrival_times(faster, 1, d, trace), ElementsAre(0));
    EXPECT_THAT(arrival_times(faster, 0, d, {}), ElementsAre());
}

TEST(Arrivals, OfPoissonAndGammaHaveTheirRateAndBurstiness) {
    const Draws d(1, 0);
    const auto check = [&](const Arrivals& process, double cv) {
        constexpr uint32_t kCount = 20000;
        const auto times = arrival_times(process, kCount, d, {});
        EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
        const double mean = static_cast<double>(times.back()) / kCount * 1e-9;
        double squares = 0;
        for (uint32_t i = 1; i < kCount; ++i)
            squares += std::pow(static_cast<double>(times[i] - times[i - 1]) * 1e-9 - mean, 2);
        EXPECT_NEAR(mean, 0.1, 0.006);
        EXPECT_NEAR(std::sqrt(squares / kCount) / mean, cv, 0.1 * cv);
    };
    check(PoissonArrivals{10}, 1);
    check(GammaArrivals{10, 0.3}, 0.3);
    check(GammaArrivals{10, 3}, 3);
}

}  // namespace
}  // namespace patchbay::experiment::arrivals_test
