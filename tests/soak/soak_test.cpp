// Memory, descriptors and mappings must not grow with the runs of an experiment. The nightly tier has more of them:
//   PATCHBAY_SOAK=RUNS test_soak
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "experiment/run_experiment.hpp"
#include "experiment/spec_load.hpp"
#include "paths.hpp"

namespace patchbay::experiment::soak_test {
namespace {

namespace fs = std::filesystem;

struct Held { // by this process
    uint64_t resident = 0, descriptors = 0, mappings = 0; // bytes, and counts
};

Held held_now() {
    Held held;
    uint64_t all_pages = 0, resident_pages = 0;
    std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
    held.resident = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const auto open = fs::directory_iterator("/proc/self/fd");
    held.descriptors = static_cast<uint64_t>(std::distance(begin(open), end(open)));
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) held.mappings += 1;
    return held;
}

uint32_t runs_asked(uint32_t by_default) {
    const char* const asked = std::getenv("PATCHBAY_SOAK");
    return asked ? static_cast<uint32_t>(std::stoul(asked)) : by_default;
}

class Soak : public ::testing::Test {
  protected:
    Soak() {
        spdlog::set_level(spdlog::level::warn); // each run's swap is logged
        std::string name = (fs::temp_directory_path() / "patchbay-soak-XXXXXX").string();
        if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
        folder_ = name;
    }
    ~Soak() override { fs::remove_all(folder_); }

    // What is held when each run takes its first step.
    std::vector<Held> held_by_run(const std::string& yaml, uint32_t runs) {
        std::ofstream(folder_ / "e.yaml") << yaml << "repeats: " << runs / 2 << "\n";
        const auto spec = load_spec((folder_ / "e.yaml").string());
        const auto registry = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
        auto prepared = spec && registry
                            ? prepare_variants(*spec, *registry) : fail(spec ? registry.error() : spec.error());
        if (!prepared) throw std::runtime_error(prepared.error());
        std::vector<Held> held;
        ExperimentOptions options;
        options.folder = folder_ / "results";
        options.probe.program = std::string(kBuildDir) + "/bin/patchbay-probe";
        options.progress = [&](const RunProgress& p) {
            if (p.run == held.size()) held.push_back(held_now());
        };
        RealClock clock;
        const auto outcome = run_experiment(*spec, *prepared, *registry, clock, options);
        if (!outcome) throw std::runtime_error(outcome.error());
        for (const std::string& notice : outcome->conclusion.notices)
            EXPECT_EQ(notice.find("invalid"), notice.npos) << notice;
        return held;
    }

    fs::path folder_;
};

struct Allowed { // bytes
    uint64_t slack;            // what the allocator may give back late
    uint64_t results_of_a_run; // the tokens and times that the conclusion is drawn from
};

void expect_no_growth(const std::vector<Held>& held, const Allowed& allowed) {
    constexpr size_t kWarm = 6; // runs after which caches and the allocator have what they need
    ASSERT_GT(held.size(), 2 * kWarm);
    const Held& warm = held[kWarm];
    for (size_t i = kWarm; i < held.size(); ++i) {
        SCOPED_TRACE("run " + std::to_string(i) + " of " + std::to_string(held.size()));
        ASSERT_LE(held[i].resident, warm.resident + allowed.slack + i * allowed.results_of_a_run);
        ASSERT_LE(held[i].descriptors, warm.descriptors + 4);
        ASSERT_LE(held[i].mappings, warm.mappings + 64);
    }
}

// Some two thousand steps a run: their reports are what a run keeps most of until it is stored.
TEST_F(Soak, SimulatedRunsGiveBackWhatTheyTook) {
    const std::string source = kSourceDir;
    expect_no_growth(held_by_run("include: [" + source + "/configs/hardware/h200.yaml, " + source +
                                     "/configs/models/llama-3.1-8b.yaml]\n"
                                     "engine: {num_blocks: 512, max_num_seqs: 1}\n"
                                     "variants: {fcfs: {}, switched: {at: {request: 4, swap: {scheduler: sjf}}}}\n"
                                     "workload:\n"
                                     "  {requests: 8, prompts: {synthetic: {tokens: 20}}, output_tokens: 250}\n",
                                 runs_asked(30)),
                     {12u << 20, 64u << 10});
}

TEST_F(Soak, ComputedRunsGiveBackWhatTheyTook) {
    const std::string source = kSourceDir;
    expect_no_growth(held_by_run(
        "include: " + source + "/configs/models/tiny.yaml\n"
                               "engine: {num_blocks: 64, max_num_seqs: 4, threads: 2}\n"
                               "variants: {fcfs: {}, switched: {at: {request: 4, swap: {sampler: greedy}}}}\n"
                               "workload: {requests: 8, prompts: {synthetic: {tokens: 20}}, output_tokens: 20}\n",
        runs_asked(30)),
                     {12u << 20, 4u << 10});
}

}  // namespace
}  // namespace patchbay::experiment::soak_test
