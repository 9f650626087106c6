#include "top/engine_link.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace patchbay::top::engine_link_test {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Takes connections and never answers.
class SilentEngine {
  public:
    SilentEngine() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof any;
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&any), size), 0);
        EXPECT_EQ(listen(fd_, 16), 0);
        EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &size), 0);
        port_ = ntohs(any.sin_port);
    }
    ~SilentEngine() { close(fd_); }

    Source source() const {
        Source out;
        out.address.host = "127.0.0.1";
        out.address.port = port_;
        out.routes = Source::Routes::kMetricsOnly;
        return out;
    }

  private:
    const int fd_;
    uint16_t port_ = 0;
};

TEST(Sample, OfAnEngineThatDoesNotAnswerFailsOnceTheTimeIsOver) {
    const SilentEngine engine;
    Source source = engine.source();
    source.answer_limit = 50ms;
    EXPECT_THAT(take_sample(source).error(), EndsWith("does not answer within 50.0 ms"));
}

TEST(Sample, IsGivenUpWhenItIsStopped) {
    const SilentEngine engine;
    std::stop_source stop;
    const std::jthread stopper([&] { stop.request_stop(); });
    EXPECT_EQ(take_sample(engine.source(), stop.get_token()).code(), StatusCode::kCancelled);
}

TEST(EngineLink, SaysWhyThereIsNoSampleAndGoesOn) {
    const SilentEngine engine;
    Source source = engine.source();
    source.answer_limit = 20ms;
    const Wakeup wakeup;
    EngineLink link(source, 1ms, wakeup);
    for (int look = 0; look < 2; ++look) {
        pollfd news{wakeup.fd(), POLLIN, 0};
        ASSERT_EQ(poll(&news, 1, 60'000), 1);
        wakeup.clear();
        const auto trouble = link.take_news().trouble;
        ASSERT_TRUE(trouble);
        EXPECT_THAT(trouble->text, HasSubstr("does not answer"));
        EXPECT_EQ(trouble->code, StatusCode::kUnavailable);
    }
}

}  // namespace
}  // namespace patchbay::top::engine_link_test
