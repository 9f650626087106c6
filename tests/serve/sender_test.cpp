#include "serve/sender.hpp"

#include <gtest/gtest.h>

#include "serve/socket_pair.hpp"

namespace patchbay::serve::testing::sender_test {
namespace {

class Senders : public ::testing::Test {
  protected:
    SocketPair pair_;
    int begun_ = 0, sent_ = 0, failed_ = 0;
    std::shared_ptr<int> held_ = std::make_shared<int>(0);
    Sender sender_{pair_.server,
                   {.hold = [this] { return held_; },
                    .on_sending =
                        [this] {
                            EXPECT_TRUE(sender_.is_sending());
                            begun_ += 1;
                        },
                    .on_sent = [this] { sent_ += 1; },
                    .on_failed = [this] { failed_ += 1; }}};
};

TEST_F(Senders, SendInOrderOneWriteAtATime) {
    sender_.send("one ");
    EXPECT_TRUE(sender_.is_sending());
    EXPECT_EQ(held_.use_count(), 2); // by the write
    sender_.send("two ");
    sender_.send("three");
    EXPECT_EQ(begun_, 1);
    pair_.work();
    EXPECT_EQ(pair_.received(), "one two three");
    EXPECT_EQ(begun_, 2); // what came meanwhile goes together
    EXPECT_EQ(sent_, 1);
    EXPECT_FALSE(sender_.is_sending());
    EXPECT_EQ(held_.use_count(), 1);
}

TEST_F(Senders, SendTheRestOnceTheClientTakesIt) {
    const std::string bytes(4u << 20, 'x');
    sender_.send(bytes);
    std::string received;
    while (received.size() < bytes.size()) {
        EXPECT_EQ(sent_, 0);
        pair_.work();
        received += pair_.received();
    }
    EXPECT_EQ(received, bytes);
    EXPECT_GT(begun_, 1);
    EXPECT_EQ(sent_, 1);
}

TEST_F(Senders, FailWhereTheClientHasGone) {
    pair_.close_client();
    sender_.send("late");
    pair_.work();
    EXPECT_EQ(failed_, 1);
    EXPECT_EQ(sent_, 0);
    EXPECT_FALSE(sender_.is_sending());
}

TEST_F(Senders, SendNothingOnceTheSocketIsClosed) {
    sender_.send("under way");
    pair_.server.close();
    EXPECT_FALSE(sender_.is_open());
    pair_.work();
    sender_.send("late");
    EXPECT_FALSE(sender_.is_sending());
    EXPECT_EQ(sent_ + failed_, 0); // the one that closed it knows
}

}  // namespace
}  // namespace patchbay::serve::testing::sender_test
