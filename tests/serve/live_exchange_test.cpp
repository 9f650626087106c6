#include "serve/live_exchange.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <stdexcept>

#include "serve/socket_pair.hpp"

namespace patchbay::serve::testing::live_exchange_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class LiveExchanges : public ::testing::Test {
  protected:
    std::shared_ptr<LiveExchange> begin(ParsedRequest read = {}) {
        return std::make_shared<LiveExchange>(sender_, set_, std::move(read), [this](bool keep) { kept_ = keep; });
    }
    std::string received() {
        pair_.work();
        return pair_.received();
    }

    SocketPair pair_;
    std::shared_ptr<Sender> sender_ = std::make_shared<Sender>(
        pair_.server, Sender::Owner{.hold = [this] { return std::shared_ptr<void>(sender_); },
                                    .on_sending = [] {},
                                    .on_sent = [] {},
                                    .on_failed = [] {}});
    std::shared_ptr<ConnectionSet> set_ = std::make_shared<ConnectionSet>(HttpOptions{}, nullptr);
    std::optional<bool> kept_; // after the end: whether the connection goes on
};

TEST_F(LiveExchanges, AnswerOnceAndEnd) {
    const auto exchange = begin();
    EXPECT_EQ(set_->exchanges, 1u);
    EXPECT_EQ(exchange->answer_state(), AnswerState::kAwaited);
    exchange->respond({.body = "{}"});
    pair_.work();
    EXPECT_EQ(kept_, true);
    EXPECT_EQ(exchange->answer_state(), AnswerState::kNone);
    exchange->respond({.body = "again"});
    EXPECT_THAT(received(), ::testing::AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), ::testing::EndsWith("\r\n\r\n{}")));
}

TEST_F(LiveExchanges, AnswerForWorkThatThrows) {
    for (const bool elsewhere : {false, true}) {
        const auto exchange = begin();
        const auto work = [] { throw std::runtime_error("no memory"); };
        if (elsewhere) exchange->offload(work);
        else exchange->post(work);
        std::string text;
        while (text.empty()) text = received();
        EXPECT_THAT(text, StartsWith("HTTP/1.1 500 "));
        EXPECT_THAT(text, HasSubstr("the server failed to answer this request"));
    }
}

TEST_F(LiveExchanges, DropWorkOfAClientThatHasGone) {
    const auto gone = begin(), there = begin();
    bool done_for_gone = false, done_for_there = false;
    gone->gone();
    gone->offload([&] { done_for_gone = true; });
    there->offload([&] { done_for_there = true; });
    set_->workers.join();
    EXPECT_FALSE(done_for_gone);
    EXPECT_TRUE(done_for_there);
}

TEST_F(LiveExchanges, BreakOffAStreamWhoseWorkThrows) {
    for (const bool when_sent : {false, true}) {
        kept_.reset();
        int gone = 0;
        const auto exchange = begin();
        const auto work = [] { throw std::runtime_error("no memory"); };
        exchange->begin_stream({});
        exchange->write("abc");
        exchange->set_callbacks(work, [&] { gone += 1; });
        EXPECT_THAT(received(), ::testing::EndsWith("3\r\nabc\r\n"));
        EXPECT_FALSE(kept_);
        if (when_sent) exchange->sent();
        else exchange->post(work);
        EXPECT_EQ(received(), "") << "no last chunk";
        EXPECT_EQ(kept_, false);
        EXPECT_EQ(gone, 1) << "nothing goes on being computed";
        exchange->write("late");
        EXPECT_EQ(received(), "");
    }
}

TEST_F(LiveExchanges, AnswerHeadWithoutTheBody) {
    begin({.request = {.method = "HEAD"}})->respond({.body = "{}"});
    EXPECT_THAT(received(), ::testing::EndsWith("Content-Length: 2\r\n\r\n"));
}

TEST_F(LiveExchanges, StreamInChunks) {
    const auto exchange = begin();
    exchange->begin_stream({});
    EXPECT_TRUE(exchange->busy());
    EXPECT_THAT(received(), HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_EQ(exchange->answer_state(), AnswerState::kStream);
    exchange->respond({}); // nothing: the answer is a stream
    exchange->write("abc");
    exchange->write("");
    EXPECT_FALSE(kept_);
    exchange->end_stream();
    exchange->write("late");
    EXPECT_EQ(received(), "3\r\nabc\r\n0\r\n\r\n");
    EXPECT_EQ(kept_, true);
}

TEST_F(LiveExchanges, StreamToHttp10UntilTheConnectionCloses) {
    const auto exchange = begin({.http_1_1 = false});
    exchange->begin_stream({});
    EXPECT_THAT(received(), HasSubstr("Connection: close\r\n"));
    exchange->write("abc");
    exchange->end_stream();
    EXPECT_EQ(received(), "abc");
    EXPECT_EQ(kept_, false);
}

TEST_F(LiveExchanges, CloseTheConnectionWhereTheServerOrTheClientDoes) {
    begin({.keep_alive = false})->respond({});
    EXPECT_THAT(received(), HasSubstr("Connection: close\r\n"));
    EXPECT_EQ(kept_, false);
    kept_.reset();
    set_->closing = true;
    begin()->respond({});
    EXPECT_THAT(received(), HasSubstr("Connection: close\r\n"));
    EXPECT_EQ(kept_, false);
}

TEST_F(LiveExchanges, SayWhatWasSentAndThatTheClientHasGone) {
    int sent = 0, gone = 0;
    const auto exchange = begin();
    exchange->set_callbacks([&] { sent += 1; }, [&] { gone += 1; });
    exchange->sent();
    exchange->gone();
    exchange->gone();
    exchange->sent();
    EXPECT_EQ(sent, 1);
    EXPECT_EQ(gone, 1);
    exchange->set_callbacks(nullptr, [&] { gone += 1; }); // at once: it has
    EXPECT_EQ(gone, 2);
    exchange->respond({.body = "late"});
    EXPECT_EQ(received(), "");
    EXPECT_FALSE(kept_);
}

TEST_F(LiveExchanges, AreCountedUntilTheyAreDropped) {
    auto exchange = begin();
    exchange->respond({});
    pair_.work();
    EXPECT_EQ(set_->exchanges, 1u);
    exchange.reset();
    EXPECT_EQ(set_->exchanges, 0u);
}

}  // namespace
}  // namespace patchbay::serve::testing::live_exchange_test
