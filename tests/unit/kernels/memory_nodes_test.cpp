#include "kernels/memory_nodes.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace patchbay::kernels::memory_nodes_test {
namespace {

namespace fs = std::filesystem;

TEST(MemoryNodes, ReadsTheKernelsLists) {
    EXPECT_EQ(nodes_in("0\n"), 1u);
    EXPECT_EQ(nodes_in("0-3\n"), 0xfu);
    EXPECT_EQ(nodes_in("0-1,4,62-63"), uint64_t{0xc000000000000013});
    EXPECT_EQ(nodes_in(""), 0u);
    EXPECT_EQ(nodes_in("none"), 0u);
    EXPECT_EQ(nodes_in("2,x"), 4u);
    EXPECT_EQ(nodes_in("7-3"), 0u);
    EXPECT_EQ(nodes_in("63-99999999999999999999"), uint64_t{1} << 63) << "what is past the last one is left out";
}

#if defined(__linux__)

// The policy of the page at `memory`, −1: the system does not say.
int policy_at(void* memory, unsigned long* nodes) {
    int policy = -1;
    if (syscall(SYS_get_mempolicy, &policy, nodes, 65UL, memory, MPOL_F_ADDR) != 0) return -1;
    return policy;
}

TEST(MemoryNodes, AreThoseThatTheProcessMayAndIsToUse) {
    const fs::path root = fs::path(testing::TempDir()) / ("nodes-" + std::to_string(getpid()));
    fs::create_directories(root / "sys/devices/system/node");
    fs::create_directories(root / "proc/self");
    std::ofstream(root / "sys/devices/system/node/has_memory") << "0-2\n";
    std::ofstream(root / "proc/self/status") << "Name:\tx\nMems_allowed_list:\t0-1\n";
    std::thread([&] { // whose policy no other thread of this program takes over
        unsigned long first = 1;
        if (syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL) != 0) GTEST_SKIP() << "this system has no policies";
        EXPECT_EQ(memory_nodes(root), 3u);
        ASSERT_EQ(syscall(SYS_set_mempolicy, MPOL_BIND, &first, 65UL), 0);
        EXPECT_EQ(memory_nodes(root), 1u) << "numactl --membind 0";
    }).join();
    fs::remove_all(root);
}

TEST(MemoryNodes, LaysWholePagesOnTheNodesInTurn) {
    const uint64_t nodes = memory_nodes();
    unsigned long found = 0;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const auto free = [](void* p) { std::free(p); };
    const std::unique_ptr<void, decltype(free)> memory(std::aligned_alloc(page, 1024 * page), free);
    auto* const bytes = static_cast<char*>(memory.get());
    if (nodes == 0 || policy_at(bytes, &found) < 0) GTEST_SKIP() << "this system says nothing of nodes";
    const int before = policy_at(bytes, &found);
    ASSERT_TRUE(interleave(bytes + 8, 512 * page, nodes)) << "of one node too";
    EXPECT_EQ(policy_at(bytes, &found), before) << "a part of a page stays as it is";
    EXPECT_EQ(policy_at(bytes + page, &found), MPOL_INTERLEAVE);
    EXPECT_EQ(found, nodes);
    EXPECT_EQ(policy_at(bytes + 511 * page, &found), MPOL_INTERLEAVE);
    EXPECT_EQ(policy_at(bytes + 513 * page, &found), before);
    EXPECT_TRUE(interleave(bytes + 8, 16, nodes)) << "no whole page, nothing to do";
    std::memset(bytes, 1, 1024 * page);
}

TEST(MemoryNodes, PlacesLargeMemoryOnlyWhereThereAreSeveral) {
    constexpr uint64_t kBytes = 8 << 20;
    unsigned long found = 0;
    const auto free = [](void* p) { std::free(p); };
    const std::unique_ptr<void, decltype(free)> memory(std::aligned_alloc(2 << 20, kBytes), free);
    auto* const bytes = static_cast<char*>(memory.get());
    const int before = policy_at(bytes, &found);
    if (before < 0) GTEST_SKIP() << "this system says nothing of nodes";
    place_large(bytes, kBytes);
    EXPECT_EQ(policy_at(bytes, &found), std::popcount(memory_nodes()) > 1 ? MPOL_INTERLEAVE : before);
    std::memset(bytes, 1, kBytes);
}

#endif

}  // namespace
}  // namespace patchbay::kernels::memory_nodes_test
