// Cores of a process: by its affinity, and by the quotas of made-up control groups.
#include "base/cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace patchbay::cores_test {
namespace {

namespace fs = std::filesystem;

class CoreQuota : public testing::Test {
  protected:
    void file(const std::string& path, const std::string& text) {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }
    ~CoreQuota() override { fs::remove_all(root_); }

    const fs::path root_ = fs::path(testing::TempDir()) / ("cores-" + std::to_string(getpid()));
};

TEST(AllowedCores, AreThoseOfTheAffinityAndNotOfTheMachine) {
    uint32_t bound = 0;
    std::thread([&] { // whose affinity no other thread of this program takes over
        const int here = sched_getcpu();
        ASSERT_GE(here, 0);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(here, &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        bound = allowed_cores();
        EXPECT_EQ(usable_cores(), 1u);
    }).join();
    EXPECT_EQ(bound, 1u);
}

TEST_F(CoreQuota, IsNoneWhereNothingLimits) {
    EXPECT_EQ(core_quota(root_), std::nullopt);
    file("proc/self/cgroup", "0::/user\n");
    file("sys/fs/cgroup/user/cpu.max", "max 100000\n");
    EXPECT_EQ(core_quota(root_), std::nullopt);
    file("proc/self/cgroup", "no groups\n3:cpu:/\n");
    file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(core_quota(root_), std::nullopt);
}

TEST_F(CoreQuota, IsTheSmallestOfItsGroupsAndThoseAbove) {
    file("proc/self/cgroup", "0::/pods/one\n");
    file("sys/fs/cgroup/pods/one/cpu.max", "400000 100000\n");
    file("sys/fs/cgroup/cpu.max", "max 100000\n");
    EXPECT_EQ(core_quota(root_), 4.0);
    file("sys/fs/cgroup/pods/cpu.max", "150000 100000\n");
    EXPECT_EQ(core_quota(root_), 1.5);
}

TEST_F(CoreQuota, IsReadOfVersionOneToo) {
    file("proc/self/cgroup", "9:memory:/other\n3:cpu,cpuacct:/docker\n");
    file("sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "50000\n");
    file("sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(core_quota(root_), 0.5);
}

}  // namespace
}  // namespace patchbay::cores_test
