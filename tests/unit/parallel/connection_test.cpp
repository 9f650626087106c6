// Messages over sockets: whole, or not at all.
#include "parallel/connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace patchbay::parallel::connection_test {
namespace {

using ::testing::HasSubstr;

std::pair<Socket, Socket> sockets() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {Socket(ends[0]), Socket(ends[1])};
}

// What a connection makes of untrusted bytes.
std::string error_of(std::string bytes) {
    auto [ours, theirs] = sockets();
    Connection connection(std::move(ours));
    EXPECT_EQ(write(theirs.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    std::vector<Message> arrived;
    const auto done = connection.receive(arrived);
    EXPECT_TRUE(arrived.empty());
    return done ? "" : done.error();
}

// A message as it is sent.
std::string frame(MessageType type, std::string_view bytes) {
    auto [ours, theirs] = sockets();
    Connection connection(std::move(ours));
    EXPECT_TRUE(connection.post(type, bytes));
    std::string out(1000, 0);
    out.resize(static_cast<size_t>(read(theirs.get(), out.data(), out.size())));
    return out;
}

TEST(Connection, CarriesMessagesInOrder) {
    auto [one, other] = sockets();
    Connection from(std::move(one)), to(std::move(other));
    ASSERT_TRUE(from.post(MessageType::kReply, "first"));
    ASSERT_TRUE(from.post(MessageType::kBeat));
    std::vector<Message> arrived;
    ASSERT_TRUE(to.receive(arrived));
    ASSERT_EQ(arrived.size(), 2u);
    EXPECT_EQ(arrived[0].type, MessageType::kReply);
    EXPECT_EQ(arrived[0].bytes, "first");
    EXPECT_EQ(arrived[1].type, MessageType::kBeat);
}

TEST(Connection, GivesWhatCameBeforeTheEndThoughItIsWrittenToInBetween) {
    auto [one, other] = sockets();
    Connection here(std::move(other));
    {
        Connection there(std::move(one));
        ASSERT_TRUE(there.post(MessageType::kQuit, "last words"));
    }
    EXPECT_TRUE(here.post(MessageType::kBeat)); // which goes nowhere
    std::vector<Message> arrived;
    const auto done = here.receive(arrived);
    ASSERT_EQ(arrived.size(), 1u);
    EXPECT_EQ(arrived[0].bytes, "last words");
    EXPECT_EQ(done.error(), "closed its connection");
}

TEST(Connection, KeepsWhatTheSocketDoesNotTake) {
    auto [one, other] = sockets();
    Connection from(std::move(one)), to(std::move(other));
    const std::string large(8 << 20, 'x');
    ASSERT_TRUE(from.post(MessageType::kReply, large));
    EXPECT_TRUE(from.has_backlog());
    std::vector<Message> arrived;
    while (from.has_backlog()) {
        ASSERT_TRUE(to.receive(arrived));
        ASSERT_TRUE(from.flush());
    }
    ASSERT_TRUE(to.receive(arrived));
    ASSERT_EQ(arrived.size(), 1u);
    EXPECT_EQ(arrived[0].bytes, large);
}

TEST(Connection, WaitsForTheRestOfAMessage) {
    const std::string whole = frame(MessageType::kReply, "some bytes");
    for (size_t cut = 0; cut < whole.size(); ++cut) {
        auto [ours, theirs] = sockets();
        Connection connection(std::move(ours));
        ASSERT_EQ(write(theirs.get(), whole.data(), cut), static_cast<ssize_t>(cut));
        std::vector<Message> arrived;
        ASSERT_TRUE(connection.receive(arrived)) << cut;
        EXPECT_TRUE(arrived.empty()) << cut;
        ASSERT_EQ(write(theirs.get(), whole.data() + cut, whole.size() - cut),
                  static_cast<ssize_t>(whole.size() - cut));
        ASSERT_TRUE(connection.receive(arrived));
        ASSERT_EQ(arrived.size(), 1u);
        EXPECT_EQ(arrived[0].bytes, "some bytes");
        theirs.reset();
        EXPECT_EQ(connection.receive(arrived).error(), "closed its connection");
    }
}

TEST(Connection, RefusesWhatIsNoMessage) {
    const std::string whole = frame(MessageType::kReply, "some bytes");
    const auto with = [&](size_t at, char byte) {
        std::string out = whole;
        out[at] = byte;
        return out;
    };
    EXPECT_EQ(error_of("GET / HTTP/1.1\r\n\r\n"), "sent something that is not a message");
    EXPECT_THAT(error_of(with(4, 9)), HasSubstr("speaks protocol 9, expected 5"));
    EXPECT_EQ(error_of(with(6, 99)), "sent a message of the unknown type 99");
    EXPECT_EQ(error_of(with(6, 0)), "sent a message of the unknown type 0");
    EXPECT_THAT(error_of(with(11, '\x7f')), HasSubstr("announced a message of 21"));
    EXPECT_EQ(error_of(with(20, '?')), "sent a message whose checksum is wrong");
}

TEST(Connection, TakesLessFromThoseItDoesNotKnow) {
    auto [ours, theirs] = sockets();
    Connection from(std::move(theirs)), to(std::move(ours));
    to.take_at_most(1024);
    std::vector<Message> arrived;
    ASSERT_TRUE(from.post(MessageType::kHello, std::string(1024, 'x')));
    EXPECT_TRUE(to.receive(arrived));
    EXPECT_EQ(arrived.size(), 1u);
    ASSERT_TRUE(from.post(MessageType::kHello, std::string(1025, 'x')));
    EXPECT_EQ(to.receive(arrived).error(), "announced a message of 1025 bytes, at most 1024 are taken");
}

TEST(Connection, SendsNoMessageThatWouldNotBeTaken) {
    auto [one, other] = sockets();
    Connection from(std::move(one));
    EXPECT_THAT(from.post(MessageType::kReply, std::string(kMaxMessage + 1, 'x')).error(), HasSubstr("at most"));
    EXPECT_FALSE(from.has_backlog());
}

}  // namespace
}  // namespace patchbay::parallel::connection_test
