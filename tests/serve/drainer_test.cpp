// The gentle end of a server: what each step of it waits for.
#include "serve/drainer.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>

#include "base/clock.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::drainer_test {
namespace {

using service::ServiceState;

std::unique_ptr<engine::Engine> tiny_engine(Clock& clock) {
    auto made = engine::Engine::create(engine::testing::tiny_model(), engine::testing::registry(), clock);
    if (!made) throw std::runtime_error(made.error());
    return *std::move(made);
}

class Drainers : public ::testing::Test {
  protected:
    void SetUp() override {
        HttpOptions options;
        options.port = 0;
        auto made = HttpServer::listen(options, [this](const auto& exchange) { asked_.set_value(exchange); });
        ASSERT_TRUE(made) << made.error();
        http_ = *std::move(made);
        http_->run();
    }
    void TearDown() override { // so that what a drainer waits for in vain ends, and with it the test
        gate_.end();
        engine_.stop();
        http_->stop();
    }
    ServiceState state() const { return engine_.status().state; }

    RealClock clock_;
    Admission admission_{8, {}, [] { return uint64_t{0}; }};
    ModelGate gate_{Serving{}};
    service::EngineThread engine_{tiny_engine(clock_), {}};
    std::promise<std::shared_ptr<Exchange>> asked_;
    std::unique_ptr<HttpServer> http_;
    Drainer part_{admission_, gate_, engine_};
};

TEST_F(Drainers, WaitForThoseWhoReadTheModelAndForAnswersUnderWay) {
    ModelGate::Entered reader;
    gate_.enter([&](ModelGate::Entered entered) { reader = std::move(entered); });
    HttpClient client(http_->port());
    client.get("/");
    auto exchange = asked_.get_future().get();

    part_.begin(*http_);
    EXPECT_TRUE(admission_.is_closed());
    EXPECT_EQ(state(), ServiceState::kRunning) << "a request that is read is still to come";
    reader = {};
    wait_until("draining", [&] { return state() == ServiceState::kDraining; });
    exchange->respond({200, "last"});
    exchange.reset(); // its connection lasts as long as it is held
    EXPECT_EQ(client.read_answer().body, "last");
    EXPECT_EQ(client.read_rest(), "") << "the connection ends after its answer";
    wait_until("end", [&] { return state() == ServiceState::kStopped; });
    part_.join();
}

TEST_F(Drainers, BeginOnce) {
    for (int i = 0; i < 3; ++i) part_.begin(*http_);
    part_.join();
    EXPECT_EQ(state(), ServiceState::kStopped);
    part_.begin(*http_);
    part_.join();
}

TEST_F(Drainers, HaveNothingToWaitForWhereTheyDidNotBegin) {
    part_.join();
    EXPECT_FALSE(admission_.is_closed());
    EXPECT_EQ(state(), ServiceState::kRunning);
}

}  // namespace
}  // namespace patchbay::serve::testing::drainer_test
