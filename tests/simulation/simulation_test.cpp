// Random loads by seed. The nightly tier has more of them:
//   PATCHBAY_SIMULATION=FIRST_SEED:SEEDS:STEPS test_simulation --gtest_filter=Simulation.*
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>

#include "simulation/simulation_fixture.hpp"

namespace patchbay::engine::testing::simulation_test {
namespace {

TEST(Simulation, KeepsItsBooksAndLosesNothingWhateverHappens) {
    spdlog::set_level(spdlog::level::off); // hundreds of swaps are logged
    unsigned long long first = 1, seeds = 10, steps = 5000;
    if (const char* asked = std::getenv("PATCHBAY_SIMULATION")) {
        ASSERT_EQ(std::sscanf(asked, "%llu:%llu:%llu", &first, &seeds, &steps), 3) << asked;
    }
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
        const std::string wrong = simulate(seed, static_cast<uint32_t>(steps));
        ASSERT_EQ(wrong, "") << "again: PATCHBAY_SIMULATION=" << seed << ":1:" << steps;
    }
    if (seeds * steps < 50'000) return;
    const Met& m = met(); // else it would have been easy
    for (const uint64_t count :
         {m.requests, m.outputs, m.aborted, m.refused, m.preemptions, m.accepted, m.hits, m.swaps, m.rolled_back,
          m.other_swaps, m.other_ends,
          m.bad_plans, m.proposer_faults, m.forked, m.stopped, m.overlapped, m.swapped_out,
          m.swapped_in, m.by_branch, m.recomputed_as_dearer, m.searched, m.best, m.crowded})
        EXPECT_GT(count, 0u);
    std::printf("%llu requests, %llu outputs, %llu aborted, %llu refused, %llu preemptions, %llu drafts accepted, "
                "%llu swaps, %llu rolled back\n",
                static_cast<unsigned long long>(m.requests), static_cast<unsigned long long>(m.outputs),
                static_cast<unsigned long long>(m.aborted), static_cast<unsigned long long>(m.refused),
                static_cast<unsigned long long>(m.preemptions), static_cast<unsigned long long>(m.accepted),
                static_cast<unsigned long long>(m.swaps), static_cast<unsigned long long>(m.rolled_back));
}

// Found by it: a prompt in chunks that found no pages came back for ever; prefill_first, which passes decodes over,
// admitted what the host then had no pages for; a beam search came back with pages for its first beam only; and beams
// that wait for others were taken to need pages of their own.
TEST(Simulation, EndsWhereItOnceDidNot) {
    for (const uint64_t seed : {138, 652, 1130, 20111, 49657, 53993}) EXPECT_EQ(simulate(seed, 300), "");
}

TEST(Simulation, IsTheSameOfASeed) {
    const Met before = met();
    ASSERT_EQ(simulate(3, 300), "");
    const Met once = met();
    ASSERT_EQ(simulate(3, 300), "");
    EXPECT_EQ(met().outputs - once.outputs, once.outputs - before.outputs);
    EXPECT_EQ(met().preemptions - once.preemptions, once.preemptions - before.preemptions);
    EXPECT_EQ(met().accepted - once.accepted, once.accepted - before.accepted);
}

}  // namespace
}  // namespace patchbay::engine::testing::simulation_test
