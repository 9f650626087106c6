// A rank that this process started: it lives as long as the process holds its socket, not the thread that started it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <thread>

#include "parallel/launch.hpp"
#include "paths.hpp"

namespace patchbay::parallel::local_rank_test {
namespace {

TEST(LocalRank, OutlivesTheThreadThatStartedItAndEndsWithItsSocket) {
    Deadlines deadlines;
    deadlines.heartbeat = 60'000'000'000;
    std::vector<Member> ranks;
    std::thread([&] {
        auto started = start_local(std::string(kBuildDir) + "/bin/patchbay", 2, deadlines, "");
        ASSERT_TRUE(started) << started.error();
        ranks = *std::move(started);
        pollfd hello{ranks[0].socket.get(), POLLIN, 0};
        ASSERT_EQ(poll(&hello, 1, 60'000), 1);
    }).join();
    ASSERT_EQ(ranks.size(), 1u);
    const pid_t child = ranks[0].child;
    for (int look = 0; look < 20; ++look) {
        ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it has ended";
        poll(nullptr, 0, 10);
    }
    ranks.clear();
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace patchbay::parallel::local_rank_test
