// One connection, over a pair of sockets, with a clock that the test moves.
#include "serve/http_connection.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "serve/socket_pair.hpp"

namespace patchbay::serve::testing::http_connection_test {
namespace {

class HttpConnections : public ::testing::Test {
  protected:
    // Answers `/` with a megabyte, and anything else with one byte.
    void start(HttpOptions options = {}) {
        set_ = std::make_shared<ConnectionSet>(options, [this](const std::shared_ptr<Exchange>& exchange) {
            requests_ += 1;
            exchange->respond({.body = std::string(exchange->request().path == "/" ? 1 << 20 : 1, 'x')});
        });
        connection_ = std::make_shared<Connection>(std::move(pair_.server), set_);
        connection_->start();
        pair_.work();
    }
    void seconds_pass(uint32_t seconds) { set_->tick += seconds * Deadline::kTicksPerSecond; }
    void ask(const std::string& path) {
        pair_.send("GET " + path + " HTTP/1.1\r\n\r\n");
        pair_.work();
    }
    bool overdue() const { return connection_->overdue(); }

    SocketPair pair_;
    std::shared_ptr<ConnectionSet> set_;
    std::shared_ptr<Connection> connection_;
    size_t requests_ = 0;
};

TEST_F(HttpConnections, AnswerNoMoreThanTheClientTakes) {
    start();
    constexpr size_t kMany = 100;
    for (size_t i = 0; i < kMany; ++i) ask("/");
    EXPECT_EQ(requests_, 1u) << "as long as its answer is not taken";
    size_t bytes = 0;
    for (std::string part = "x"; !part.empty(); pair_.work()) bytes += (part = pair_.received()).size();
    EXPECT_EQ(requests_, kMany);
    EXPECT_GT(bytes, kMany << 20);
}

TEST_F(HttpConnections, LetPagesOfAllowedOriginsReadWhyARequestIsNotRead) {
    for (const char* last : {"Content-Length: 5000\r\n\r\n", "Transfer-Encoding: gzip\r\n\r\n"}) {
        HttpOptions options;
        options.allowed_origins = {"https://good.example"};
        options.max_body_bytes = 1000;
        SocketPair pair;
        const auto set = std::make_shared<ConnectionSet>(options, [](const std::shared_ptr<Exchange>&) {});
        const auto connection = std::make_shared<Connection>(std::move(pair.server), set);
        connection->start();
        pair.work();
        pair.send(std::string("POST / HTTP/1.1\r\nOrigin: https://good.example\r\n") + last);
        pair.work();
        EXPECT_THAT(pair.received(), ::testing::HasSubstr("Access-Control-Allow-Origin: https://good.example\r\n"));
    }
}

TEST_F(HttpConnections, EndWithAClientThatTakesNothing) {
    HttpOptions options;
    options.write_seconds = 3;
    start(options);
    ask("/");
    seconds_pass(2);
    EXPECT_FALSE(overdue());
    ask("/version");
    EXPECT_FALSE(overdue());
    seconds_pass(1);
    EXPECT_TRUE(overdue()) << "another request changes nothing";
}

TEST_F(HttpConnections, GoOnWithOneThatTakesItsAnswersLate) {
    HttpOptions options;
    options.write_seconds = 3;
    options.keep_alive_seconds = 10;
    start(options);
    ask("/");
    ask("/version");
    seconds_pass(2);
    for (std::string part = "x"; !part.empty(); pair_.work()) part = pair_.received();
    EXPECT_EQ(requests_, 2u);
    seconds_pass(9);
    EXPECT_FALSE(overdue());
    seconds_pass(1);
    EXPECT_TRUE(overdue());
}

TEST_F(HttpConnections, ThatComeWhileTheServerClosesMayAskOnceAndSoon) {
    set_ = std::make_shared<ConnectionSet>(HttpOptions{}, [this](const std::shared_ptr<Exchange>& exchange) {
        requests_ += 1;
        exchange->respond({.body = "x"});
    });
    set_->closing = true;
    connection_ = std::make_shared<Connection>(std::move(pair_.server), set_);
    connection_->start();
    pair_.work();
    seconds_pass(1);
    EXPECT_FALSE(overdue());
    seconds_pass(1);
    EXPECT_TRUE(overdue());
    ask("/version");
    EXPECT_EQ(requests_, 1u);
    EXPECT_THAT(pair_.received(), ::testing::HasSubstr("Connection: close"));
}

}  // namespace
}  // namespace patchbay::serve::testing::http_connection_test
