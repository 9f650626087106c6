// Who is accepted by rank 0, and what it does where it cannot accept.
#include "parallel/joining.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "parallel/address.hpp"

namespace patchbay::parallel::joining_test {
namespace {

struct NoMoreFiles { // as long as it lives
    NoMoreFiles() {
        getrlimit(RLIMIT_NOFILE, &before);
        const Socket lowest(dup(0));
        const rlimit less{static_cast<rlim_t>(lowest.get()), before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &less);
    }
    ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before); }
    rlimit before{};
};

TEST(Joining, DoesNotWaitForWhatItCannotAccept) {
    auto listener = listen_at({"127.0.0.1", 0});
    ASSERT_TRUE(listener) << listener.error();
    const int fd = listener->get();
    ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
    const auto rank = connect_to({"127.0.0.1", ntohs(at.sin_port)}, 60'000'000'000);
    ASSERT_TRUE(rank) << rank.error();

    Peers peers(2, {});
    Joining joining("job", peers, *std::move(listener), 1'000'000'000);
    {
        const NoMoreFiles none;
        joining.accept_all(1, [](Peer&) {});
    }
    EXPECT_EQ(joining.listener(), -1);
    EXPECT_TRUE(peers.all().empty());
    joining.accept_all(2, [](Peer&) {});
    EXPECT_EQ(joining.listener(), fd);
    EXPECT_EQ(peers.all().size(), 1u);
}

}  // namespace
}  // namespace patchbay::parallel::joining_test
