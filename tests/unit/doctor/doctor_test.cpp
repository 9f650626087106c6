// The checks on machines that are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "doctor/findings.hpp"
#include "paths.hpp"

namespace patchbay::doctor::doctor_test {
namespace {

namespace fs = std::filesystem;

class Doctor : public testing::Test {
  protected:
    Doctor() {
        machine_.root = fs::path(testing::TempDir()) /
                        ("doctor-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "-" +
                         std::to_string(getpid()));
        machine_.can_load = [this](const std::string& library) { return library == loads_; };
        machine_.in_path = [](const std::string&) { return false; };
    }
    ~Doctor() override { fs::remove_all(machine_.root); }

    void file(const std::string& path, const std::string& text) {
        fs::create_directories((machine_.root / path).parent_path());
        std::ofstream(machine_.root / path) << text;
    }

    Surroundings machine_;
    std::string loads_;
};

const Finding& named(const std::vector<Finding>& all, const std::string& name) {
    for (const Finding& f : all)
        if (f.name == name) return f;
    throw std::runtime_error("no finding " + name);
}

// Another machine takes a fifth of the time while the check waits.
class Neighbour final : public Clock {
  public:
    explicit Neighbour(std::function<void()> work) : work_(std::move(work)) {}
    uint64_t now_ns() const override { return 0; }
    void wait_until_ns(uint64_t) override { work_(); }

  private:
    std::function<void()> work_;
};

TEST_F(Doctor, DistinguishesStealFromOtherWork) {
    file("proc/stat", "cpu 100 0 50 800 10 0 0 40 0 0\n");
    Neighbour clock([&] { file("proc/stat", "cpu 130 0 50 840 10 0 0 60 0 0\n"); });
    const auto all = check_cpu(machine_, clock);
    EXPECT_EQ(named(all, "steal").state, State::kNote);
    EXPECT_THAT(named(all, "steal").found, testing::HasSubstr("22.2 %")); // 20 of 90 ticks
    EXPECT_THAT(named(all, "other work").found, testing::HasSubstr("33.3 %"));
    EXPECT_NE(named(all, "steal").remedy, "");
}

TEST_F(Doctor, SaysThatTheFrequencyIsFreeToVary) {
    file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    Neighbour clock([] {});
    EXPECT_EQ(named(check_cpu(machine_, clock), "frequency").remedy, "cpupower frequency-set -g performance");
    file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    EXPECT_EQ(named(check_cpu(machine_, clock), "frequency").state, State::kGood);
}

TEST_F(Doctor, MeasuresMemoryAndHugePages) {
    file("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 2097152 kB\nSwapTotal: 10 kB\nSwapFree: 10 kB\n");
    file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    auto all = check_memory(machine_);
    EXPECT_EQ(named(all, "size").found, "2.0 GiB free of 16.0 GiB");
    EXPECT_EQ(named(all, "size").state, State::kNote);
    EXPECT_EQ(named(all, "huge pages").remedy, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    all = check_memory(machine_);
    EXPECT_EQ(named(all, "huge pages").state, State::kGood);
}

TEST_F(Doctor, ShowsTheMemoryThatTheControlGroupLeaves) {
    file("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\n");
    file("proc/self/cgroup", "0::/\n");
    file("sys/fs/cgroup/memory.max", "1073741824\n");
    file("sys/fs/cgroup/memory.current", "536870912\n");
    const Finding size = named(check_memory(machine_), "size");
    EXPECT_EQ(size.found, "0.5 GiB free of 1.0 GiB, as much as the control group leaves");
    EXPECT_EQ(size.state, State::kGood);
}

TEST_F(Doctor, ShowsTheNodesOfMemory) {
    file("sys/devices/system/node/has_memory", "0\n");
    EXPECT_EQ(named(check_memory(machine_), "nodes").found, "one");
    file("sys/devices/system/node/has_memory", "0-1\n");
    EXPECT_EQ(named(check_memory(machine_), "nodes").found, "memory on nodes 0-1: weights and KV lie on all in turn");
    file("proc/self/status", "Mems_allowed_list:\t1\n");
    EXPECT_EQ(named(check_memory(machine_), "nodes").found, "memory on nodes 0-1, for this process: 1");
    file("sys/devices/system/node/has_memory", "0-3\n");
    file("proc/self/status", "Mems_allowed_list:\t1-2\n");
    EXPECT_EQ(named(check_memory(machine_), "nodes").found,
              "memory on nodes 0-3, for this process: 1,2: weights and KV lie on all in turn");
}

TEST_F(Doctor, AdvisesLibrariesOnlyWhereThereIsAGpu) {
    loads_ = "libcublasLt.so.12";
    auto all = check_gpu(machine_, {"cpu"});
    EXPECT_EQ(named(all, "card").state, State::kAbsent);
    EXPECT_EQ(named(all, "cuBLASLt").state, State::kGood);
    EXPECT_EQ(named(all, "CUDA runtime").remedy, "");
    file("dev/nvidia0", "");
    all = check_gpu(machine_, {"cpu"});
    EXPECT_EQ(named(all, "card").state, State::kGood);
    EXPECT_EQ(named(all, "driver").remedy, "nvidia-smi");
    EXPECT_EQ(named(all, "CUDA runtime").remedy, "install NVIDIA's CUDA Toolkit, 12.0 or later");
    EXPECT_THAT(check_gpu(machine_, {"cpu", "cuda"}), testing::SizeIs(2)) << "it has its own: card and driver alone";
}

TEST_F(Doctor, FindsAGpuOfAnyNumber) {
    for (const char* other : {"nvidiactl", "nvidia-uvm", "nvidia", "nvidia1x"}) file("dev/" + std::string(other), "");
    EXPECT_EQ(named(check_gpu(machine_, {"cuda"}), "card").state, State::kAbsent);
    file("dev/nvidia12", "");
    EXPECT_EQ(named(check_gpu(machine_, {"cuda"}), "card").found, "an NVIDIA GPU is at /dev/nvidia12");
}

TEST_F(Doctor, SaysHowABuildGetsTheDeviceOfAGpuThatIsThere) {
    const auto says = [&](const std::vector<std::string>& devices) {
        for (const Finding& f : check_gpu(machine_, devices))
            if (f.name == "device cuda") return f.remedy;
        return std::string();
    };
    EXPECT_EQ(says({"cpu"}), "");
    file("dev/nvidia0", "");
    EXPECT_THAT(says({"cpu"}), testing::StartsWith("install NVIDIA's CUDA Toolkit, 12.0 or later, with nvcc in PATH; "
                                                   "then scripts/install-deps --cuda"));
    machine_.in_path = [](const std::string& program) { return program == "nvcc"; };
    EXPECT_THAT(says({"cpu"}), testing::StartsWith("scripts/install-deps --cuda, then run cmake"));
    machine_.in_checkout = false;
    EXPECT_EQ(says({"cpu"}), "build Patchbay from its source (docs/cuda.md)");
    EXPECT_EQ(says({"cpu", "cuda"}), "");
}

TEST_F(Doctor, ShowsWhichCoresThisProcessMayUse) {
    Neighbour clock([] {});
    file("sys/devices/system/cpu/online", "0-63\n");
    file("proc/self/status", "Name:\tpatchbay\nCpus_allowed_list:\t0-63\n");
    auto all = check_cpu(machine_, clock);
    EXPECT_EQ(named(all, "cores").found, "online: 0-63");
    EXPECT_EQ(named(all, "cores").state, State::kGood);
    file("proc/self/status", "Name:\tpatchbay\nCpus_allowed_list:\t4-7\n");
    file("proc/self/cgroup", "0::/\n");
    file("sys/fs/cgroup/cpu.max", "250000 100000\n");
    all = check_cpu(machine_, clock);
    EXPECT_EQ(named(all, "cores").found, "online: 0-63, for this process: 4-7");
    EXPECT_EQ(named(all, "cores").state, State::kNote);
    EXPECT_EQ(named(all, "limit").found, "the control group leaves the time of 2.5 cores");
}

TEST_F(Doctor, SurvivesAMachineThatShowsNothing) {
    Neighbour clock([] {});
    std::vector<Finding> all = check_cpu(machine_, clock);
    for (const auto& some : {check_memory(machine_), check_gpu(machine_, {}), check_parallel(machine_)})
        all.insert(all.end(), some.begin(), some.end());
    EXPECT_THAT(table_of(all), testing::HasSubstr("→ apt install openmpi-bin"));
    EXPECT_THAT(json_of(all), testing::HasSubstr("\"state\": \"absent\""));
}

TEST(DoctorDevices, TriesEachChoiceOfInstructions) {
    const auto registry = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
    ASSERT_TRUE(registry) << registry.error();
    const auto all = check_devices(*registry);
    EXPECT_EQ(named(all, "cpu").state, State::kGood);
    EXPECT_EQ(named(all, "cpu at plain").found, "available");
}

TEST_F(Doctor, NamesWhatBuildsPluginsAndMakesReports) {
    std::vector<std::string> ran;
    machine_.in_path = [](const std::string& program) { return program == "clang++"; };
    machine_.runs = [&](const std::vector<std::string>& words) { return ran = words, false; };
    const auto all = check_tools(machine_, "/opt/python");
    EXPECT_EQ(named(all, "compiler").found, "clang++");
    EXPECT_EQ(named(all, "CMake").state, State::kAbsent);
    EXPECT_EQ(named(all, "CMake").remedy, "apt install cmake");
    EXPECT_EQ(ran, (std::vector<std::string>{"/opt/python", "-c", "import matplotlib"}));
    EXPECT_THAT(named(all, "report Python").found, testing::HasSubstr("/opt/python has no matplotlib"));
    EXPECT_THAT(named(all, "report Python").remedy, testing::StartsWith("scripts/install-deps, or"));
    machine_.in_checkout = false;
    EXPECT_THAT(named(check_tools(machine_, "/opt/python"), "report Python").remedy,
                testing::StartsWith("apt install python3-matplotlib, or set PATCHBAY_PYTHON"));
    machine_.runs = [](const auto&) { return true; };
    EXPECT_EQ(named(check_tools(machine_, "/opt/python"), "report Python").found, "/opt/python");
}

TEST(DoctorText, SaysWhereUnicodeIsOlderThanThatOfTheToolsThatMakeVocabularies) {
    const auto all = check_text({{"ICU 72.1", 15, 0}, {"PCRE2 10.46", 16, 0}});
    EXPECT_EQ(named(all, "ICU").state, State::kNote);
    EXPECT_THAT(named(all, "ICU").found, testing::StartsWith("ICU 72.1 knows Unicode 15.0, tokenizers that"));
    EXPECT_EQ(named(all, "PCRE2").state, State::kGood);
    EXPECT_EQ(named(all, "PCRE2").found, "PCRE2 10.46 knows Unicode 16.0");
    const auto here = text::unicode_tables();
    ASSERT_EQ(here.size(), 2u);
    for (const auto& [library, major, minor] : here) EXPECT_GE(major, 14) << library; // Debian 12's
}

TEST_F(Doctor, ListsPluginFolders) {
    const std::string folder = std::string(kBuildDir) + "/lib/patchbay/plugins";
    const auto registry = host::Registry::open({folder});
    ASSERT_TRUE(registry) << registry.error();
    const Finding found = named(check_plugin_folders(*registry), folder);
    EXPECT_EQ(found.state, State::kGood);
    EXPECT_THAT(found.found, testing::EndsWith(" plugins"));
}

}  // namespace
}  // namespace patchbay::doctor::doctor_test
