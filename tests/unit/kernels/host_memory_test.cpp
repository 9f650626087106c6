// The memory of this machine, and of made-up control groups.
#include "kernels/host_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace patchbay::kernels::host_memory_test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMebi = 1 << 20;

class HostMemoryOf : public testing::Test { // a machine of 1000 MiB, of which 800 are free
  protected:
    HostMemoryOf() { file("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 1 kB\nMemAvailable: 819200 kB\n"); }
    ~HostMemoryOf() override { fs::remove_all(root_); }

    void file(const std::string& path, const std::string& text) {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }
    void mebi(const std::string& path, uint64_t count) { file(path, std::to_string(count * kMebi) + "\n"); }
    void expect(uint64_t total, uint64_t available, bool limited) {
        const HostMemory found = host_memory(root_);
        EXPECT_EQ(found.total, total * kMebi);
        EXPECT_EQ(found.available, available * kMebi);
        EXPECT_EQ(found.limited, limited);
    }

    const fs::path root_ = fs::path(testing::TempDir()) / ("memory-" + std::to_string(getpid()));
};

TEST(HostMemory, HasLessAvailableThanInTotal) {
    const HostMemory memory = host_memory();
    EXPECT_GT(memory.total, 0u);
    EXPECT_LE(memory.available, memory.total);
    const HostMemory none = host_memory("/nowhere");
    EXPECT_EQ(none.total + none.available, 0u);
}

TEST_F(HostMemoryOf, AMachineWithoutLimitsIsAllOfIt) {
    expect(1000, 800, false);
    file("proc/self/cgroup", "no groups\n0::/user\n5:memory:/user\n");
    file("sys/fs/cgroup/user/memory.max", "max\n");
    mebi("sys/fs/cgroup/user/memory.current", 999);
    file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    expect(1000, 800, false);
}

TEST_F(HostMemoryOf, AGroupIsWhatItAndThoseAboveItLeave) {
    file("proc/self/cgroup", "0::/pods/one\n");
    mebi("sys/fs/cgroup/pods/one/memory.max", 200);
    mebi("sys/fs/cgroup/pods/one/memory.current", 150);
    expect(200, 50, true);
    mebi("sys/fs/cgroup/pods/memory.max", 300);
    mebi("sys/fs/cgroup/pods/memory.current", 290);
    expect(200, 10, true);
    mebi("sys/fs/cgroup/pods/memory.current", 301);
    expect(200, 0, true);
}

TEST_F(HostMemoryOf, AGroupCountsWhatCachesFilesAsFree) {
    file("proc/self/cgroup", "0::/\n");
    mebi("sys/fs/cgroup/memory.max", 200);
    mebi("sys/fs/cgroup/memory.current", 190);
    file("sys/fs/cgroup/memory.stat", "anon 1\nactive_file 10485760\nfile 7\ninactive_file 20971520\n");
    expect(200, 40, true);
}

TEST_F(HostMemoryOf, AGroupOfVersionOneIsReadToo) {
    file("proc/self/cgroup", "3:cpu:/other\n9:memory:/docker\n");
    mebi("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", 200);
    mebi("sys/fs/cgroup/memory/docker/memory.usage_in_bytes", 150);
    file("sys/fs/cgroup/memory/docker/memory.stat", "active_file 1\ntotal_inactive_file 10485760\n");
    expect(200, 60, true);
}

}  // namespace
}  // namespace patchbay::kernels::host_memory_test
