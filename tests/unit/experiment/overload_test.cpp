#include "experiment/overload.hpp"

#include <gmock/gmock.h>

namespace patchbay::experiment::overload_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// 40 requests, one in 100 ms; each waits `wait_ms`, and `more_ms` longer than the one before it.
RunRecord run_of(size_t variant, uint32_t repeat, double wait_ms, double more_ms, uint64_t every_ms = 100) {
    constexpr uint64_t kMs = 1'000'000;
    RunRecord run;
    run.variant = variant;
    run.repeat = repeat;
    for (uint64_t i = 0; i < 40; ++i) {
        RequestRecord r;
        r.arrival_ns = i * every_ms * kMs;
        r.token_ns = {r.arrival_ns + static_cast<uint64_t>((wait_ms + more_ms * static_cast<double>(i)) * 1e6)};
        r.finish_ns = r.token_ns[0];
        r.output = {1};
        r.finish = engine::FinishReason::kLength;
        run.duration_ns = r.finish_ns;
        run.requests.push_back(std::move(r));
    }
    return run;
}

std::vector<std::string> notices(const std::vector<RunRecord>& runs, const std::vector<Contestant>& contestants) {
    std::vector<RunSummary> out;
    for (const RunRecord& run : runs) out.push_back(summary_of(run, {}));
    return overload_notices(out, contestants);
}

TEST(Overload, IsSaidOfAVariantWhoseWaitsGrowWithTheRun) {
    std::vector<RunRecord> runs;
    for (uint32_t r = 0; r < 3; ++r) {
        runs.push_back(run_of(0, r, 50 + r, r == 1 ? -0.1 : 0.1)); // now up, now down
        runs.push_back(run_of(1, r, 50, 25 + r));
    }
    EXPECT_THAT(notices(runs, {{"steady", {}}, {"late", {}}}),
                ElementsAre("variant 'late' was overloaded: 10.0 requests per second arrived, 8.06 were served, "
                            "and the time to first token grew by 0.260 s with each second; how long its latencies "
                            "are depends on how long the run is"));
}

TEST(Overload, NeedsMoreThanOneRunAndGrowthThatMatters) {
    EXPECT_THAT(notices({run_of(0, 0, 50, 25)}, {{"one", {}}}), IsEmpty());
    EXPECT_THAT(notices({run_of(0, 0, 50, 4), run_of(0, 1, 50, 4.1)}, {{"slight", {}}}), IsEmpty());
    auto invalid = run_of(0, 0, 50, 25);
    invalid.faults = {"a fault"};
    EXPECT_THAT(notices({invalid, run_of(0, 1, 50, 25)}, {{"one", {}}}), IsEmpty());
    auto search = run_of(0, 0, 50, 25), higher = run_of(0, 1, 50, 26);
    search.rate = higher.rate = 64; // which looks for the rate that is too high
    EXPECT_THAT(notices({search, higher}, {{"one", {}}}), IsEmpty());
}

TEST(Overload, IsNothingThatArrivalsAllAtOnceShow) {
    EXPECT_FALSE(load_of(run_of(0, 0, 50, 25, 0), {}));
    auto few = run_of(0, 0, 50, 25);
    few.requests.resize(9);
    EXPECT_FALSE(load_of(few, {}));
    const RunRecord steady = run_of(0, 0, 50, 0);
    const auto load = load_of(steady, {0, steady.duration_ns});
    ASSERT_TRUE(load);
    EXPECT_NEAR(load->offered, 10, 1e-9);
    EXPECT_NEAR(load->served, 40 / 3.95, 1e-9);
    EXPECT_NEAR(load->growth, 0, 1e-9);
}

}  // namespace
}  // namespace patchbay::experiment::overload_test
