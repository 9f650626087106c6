// Ranks that mpirun starts, on this host and on two that are namespaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "paths.hpp"

namespace patchbay::launched_test {
namespace {

using ::testing::HasSubstr;

const std::string kProgram = std::string(kBuildDir) + "/bin/patchbay";
const std::string kSource = kSourceDir;

struct Ran {
    std::string printed; // on both streams
    int code = -1;
};

Ran run(const std::string& command) {
    Ran out;
    FILE* const pipe = popen(("timeout -k 1 100 sh -c '" + command + "' 2>&1").c_str(), "r");
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) out.printed.append(part, n);
    const int status = pclose(pipe);
    if (WIFEXITED(status)) out.code = WEXITSTATUS(status);
    return out;
}

std::string generate(int ranks, int tokens) {
    return kProgram + " generate --model " + kSource + "/models/demo-target --dtype float32 --threads 1" +
           " --temperature 0 --tensor-parallel-size " + std::to_string(ranks) + " --prompt \"The owl\" --max-tokens " +
           std::to_string(tokens);
}

std::string two_hosts(const std::string& mode, const std::string& command) {
    return "unshare -mn " + kSource + "/tests/unit/parallel/two_hosts.sh " + mode + " " + command;
}

class Mpirun : public ::testing::Test {
  protected:
    void SetUp() override {
        if (run("command -v mpirun").code != 0) GTEST_SKIP() << "there is no mpirun (scripts/install-deps brings it)";
    }
    static Ran mpirun(int ranks, const std::string& command) {
        return run("mpirun --allow-run-as-root --oversubscribe -n " + std::to_string(ranks) + " " + command);
    }
};

TEST_F(Mpirun, StartsRanksThatGiveTheTextOfOne) {
    const Ran alone = run(generate(1, 20));
    ASSERT_EQ(alone.code, 0) << alone.printed;
    const Ran two = mpirun(2, generate(2, 20));
    EXPECT_EQ(two.code, 0);
    EXPECT_EQ(two.printed, alone.printed);
}

TEST_F(Mpirun, StartsRanksOnceForAllRunsOfAnExperiment) {
    std::string folder = (std::filesystem::temp_directory_path() / "patchbay-ranks-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    std::ofstream(folder + "/e.yaml") << "{model: " << kSource
                                      << "/models/demo-target, engine: {tensor_parallel_size: 2, threads: 1}, "
                                         "repeats: 2, workload: {requests: 2, prompts: {synthetic: {tokens: 8}}, "
                                         "output_tokens: 4}}\n";
    const Ran two = mpirun(2, "-wdir " + folder + " " + kProgram + " run e.yaml --no-report");
    std::filesystem::remove_all(folder);
    EXPECT_EQ(two.code, 0) << two.printed;
    EXPECT_THAT(two.printed, HasSubstr("output throughput"));
}

TEST_F(Mpirun, StartingAnotherNumberOfRanksIsRefused) {
    const Ran more = mpirun(3, generate(2, 4));
    EXPECT_NE(more.code, 0);
    EXPECT_THAT(more.printed, HasSubstr("mpirun started 3 ranks, but engine.tensor_parallel_size is 2"));
    const Ran one = mpirun(2, generate(1, 4));
    EXPECT_NE(one.code, 0);
    EXPECT_THAT(one.printed, HasSubstr("mpirun started 2 ranks, but engine.tensor_parallel_size is 1"));
}

// The shell of rank 0 waits until rank 1 has given up.
TEST_F(Mpirun, RanksAboveZeroKeepToTheTimeoutsOfTheCommand) {
    std::string folder = (std::filesystem::temp_directory_path() / "patchbay-ranks-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    std::ofstream(folder + "/e.yaml") << "parallel: {join_timeout_ms: 300}\n";
    const std::string ended = folder + "/ended";
    ASSERT_EQ(mkfifo(ended.c_str(), 0600), 0);
    std::ofstream(folder + "/rank.sh") << "if [ $OMPI_COMM_WORLD_RANK = 0 ]; then cat " << ended << "; exit; fi; "
                                       << generate(2, 4) << " --config " << folder << "/e.yaml; "
                                       << "echo ended with $? > " << ended << "\n";
    const Ran two = mpirun(2, "sh " + folder + "/rank.sh");
    std::filesystem::remove_all(folder);
    EXPECT_THAT(two.printed, HasSubstr("patchbay: no answer at 127.0.0.1:"));
    EXPECT_THAT(two.printed, HasSubstr(" within 0.3 s: Connection refused"));
    EXPECT_THAT(two.printed, HasSubstr("ended with 1"));
}

class TwoHosts : public Mpirun {
  protected:
    static bool possible(const Ran& r) { return r.code != 77 && r.printed.find("unshare:") == std::string::npos; }
};

TEST_F(TwoHosts, GiveTheTextOfOne) {
    const Ran two = run(two_hosts("text", generate(2, 20)));
    if (!possible(two)) GTEST_SKIP() << two.printed;
    const Ran alone = run(generate(1, 20));
    EXPECT_EQ(two.code, 0);
    EXPECT_EQ(two.printed, alone.printed);
}

TEST_F(TwoHosts, WhoseLinkIsCutFailTheRunWithTheReason) {
    const Ran cut = run(two_hosts("cut", generate(2, 1900)));
    if (!possible(cut)) GTEST_SKIP() << cut.printed;
    EXPECT_THAT(cut.printed, HasSubstr("patchbay generate: rank 1 ("));
    EXPECT_THAT(cut.printed, HasSubstr("hangs: no sign of life"));
}

}  // namespace
}  // namespace patchbay::launched_test
