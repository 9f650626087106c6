#include "cli/run_program.hpp"

#include <gtest/gtest.h>

namespace patchbay::cli::run_program_test {
namespace {

TEST(RunQuietly, EndsAProgramThatGoesOnAfterItsOutputEnded) {
    const ProgramRun run = run_quietly({"sh", "-c", "echo said; exec > /dev/null 2>&1; sleep 1000"}, 1);
    EXPECT_EQ(run.output, "said\n");
    EXPECT_EQ(run.status, ProgramRun::kTimedOut);
}

TEST(RunQuietly, WaitsForTheExitCodeOfSuchAProgram) {
    EXPECT_EQ(run_quietly({"sh", "-c", "exec > /dev/null 2>&1; sleep 0.1; exit 3"}, 60).status, 3);
}

}  // namespace
}  // namespace patchbay::cli::run_program_test
