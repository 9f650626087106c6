#include "service/engine_loop.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "unit/service/fake_engine.hpp"
#include "unit/service/service_fixture.hpp"

namespace patchbay::service::testing::engine_loop_test {
namespace {

using engine::FinishReason;
using ::testing::ElementsAre;

// A loop that runs on the test's own thread until a task or an observer stops it.
class EngineLoops : public ::testing::Test {
  protected:
    void start(EngineReplacement::Engine engine) {
        state_ = std::make_unique<LoopState>(std::move(engine), 16);
        loop_ = std::make_unique<EngineLoop>(options_, *state_);
    }
    std::shared_ptr<FakeEngine> start() {
        auto engine = std::make_shared<FakeEngine>();
        start(engine);
        return engine;
    }
    std::shared_ptr<Stream> arrive(uint64_t seed, uint32_t max_tokens, std::function<void()> on_ready = nullptr) {
        auto stream = std::make_shared<Stream>(1, 64, std::move(on_ready));
        EXPECT_TRUE(state_->inbox.add({request(seed, max_tokens), stream}));
        return stream;
    }

    EngineThreadOptions options_;
    std::unique_ptr<LoopState> state_;
    std::unique_ptr<EngineLoop> loop_;
};

TEST_F(EngineLoops, ServeWhatIsInTheInboxUntilTheyAreStopped) {
    const auto engine = start();
    engine->after_step = [&] {
        if (!engine->has_unfinished()) state_->inbox.stop();
    };
    const auto one = arrive(1, 3), other = arrive(2, 5);
    loop_->run();
    EXPECT_EQ(read_all(*one).tokens.size(), 3u);
    EXPECT_EQ(read_all(*other).tokens.size(), 5u);
    EXPECT_EQ(state_->status.state, ServiceState::kStopped);
    EXPECT_EQ(state_->status.unfinished, 0u);
    EXPECT_EQ(state_->status.steps, 5u);
}

TEST_F(EngineLoops, AbortWhatRunsWhenTheyAreStopped) {
    start()->after_step = [this] { state_->inbox.stop(); };
    const auto stream = arrive(1, 400);
    loop_->run();
    EXPECT_EQ(read_all(*stream).endings, std::vector{FinishReason::kAbort});
}

TEST_F(EngineLoops, FailWhatTheyDoNotTakeAnyMore) {
    start();
    bool called = false, ended = false; // from then on callers are refused, and nothing more comes
    const auto stream = arrive(1, 4, [&] { ended = state_->status.has_ended(); });
    state_->inbox.add_task([&] { called = true; });
    state_->inbox.stop();
    loop_->run();
    EXPECT_EQ(stream->failure()->text, "the engine was stopped");
    EXPECT_TRUE(ended);
    EXPECT_FALSE(called);
    EXPECT_TRUE(state_->inbox.take().tasks.empty());
}

TEST_F(EngineLoops, EndWithTheReasonOfAStepThatFails) {
    start()->step_fault = fail("the device is gone");
    const auto stream = arrive(1, 4);
    loop_->run();
    EXPECT_EQ(state_->status.state, ServiceState::kFailed); // and not stopped
    EXPECT_EQ(state_->status.reason, "the device is gone");
    EXPECT_EQ(stream->failure()->text, "the device is gone");
    EXPECT_EQ(stream->failure()->code, StatusCode::kFailed);
}

TEST_F(EngineLoops, GiveRequestsTheEndThatTheirEngineGivesThemInAStepThatFails) {
    config::EngineConfig config = engine::testing::tiny_model();
    config.scheduler = {"fails_on_request", {{"overplans", "true"}}};
    config.engine.max_num_batched_tokens = 8; // fewer than the prompt has
    StatusCode code{};
    options_.on_output = [&](const engine::RequestOutput& out) {
        code = out.error_code;
        state_->inbox.stop();
    };
    RealClock clock;
    start(make_engine(config, clock));
    const auto stream = arrive(1, 4);
    loop_->run();
    EXPECT_EQ(state_->status.state, ServiceState::kFailed);
    EXPECT_THAT(state_->status.reason, ::testing::HasSubstr("more than max_num_batched_tokens"));
    EXPECT_EQ(read_all(*stream).endings, std::vector{FinishReason::kError});
    EXPECT_EQ(code, StatusCode::kFailed) << "the scheduler failed, and nothing in the engine is broken";
}

TEST_F(EngineLoops, FailWhereAnEngineWithoutWorkCannotStep) {
    start()->check_fault = unavailable("a rank has gone");
    state_->inbox.add_task([] {});
    loop_->run();
    EXPECT_EQ(state_->status.state, ServiceState::kFailed);
    EXPECT_EQ(state_->status.reason, "a rank has gone");
    EXPECT_EQ(state_->status.steps, 0u);
}

TEST_F(EngineLoops, ThatFailDoNotTakeAnotherEngine) {
    start()->step_fault = fail("the device is gone");
    const auto stream = arrive(1, 4);
    const auto next = std::make_shared<FakeEngine>();
    bool took_over = false;
    state_->inbox.add_task([&] { state_->engines.begin(next, [&](uint64_t) { took_over = true; }); });
    loop_->run();
    EXPECT_EQ(state_->status.state, ServiceState::kFailed);
    EXPECT_FALSE(took_over);
    EXPECT_NE(state_->engines.current(), next);
}

TEST_F(EngineLoops, ServeWhatCameBeforeTheOtherEngineByTheFirst) {
    const auto engine = start();
    const auto next = std::make_shared<FakeEngine>(8);
    std::shared_ptr<Stream> late;
    engine->after_step = [&] { // after the inbox of this turn was taken
        if (late || engine->has_unfinished()) return;
        late = arrive(5, 6);
        state_->engines.begin(next, [&](uint64_t) { state_->inbox.stop(); });
        state_->inbox.hold_arrivals();
    };
    const auto first = arrive(1, 3);
    loop_->run();
    EXPECT_EQ(state_->engines.current(), next);
    EXPECT_EQ(read_all(*late).tokens, std::vector<engine::TokenId>(6, 7));
}

TEST_F(EngineLoops, TakeAnotherEngineWhenTheFirstHasNothingLeft) {
    const auto engine = start();
    const auto next = std::make_shared<FakeEngine>(8);
    std::vector<std::string> events;
    const auto old = arrive(1, 3);
    std::shared_ptr<Stream> waiting, given_up;
    state_->inbox.add_task([&] {
        state_->engines.begin(next, [&](uint64_t step) {
            EXPECT_EQ(state_->engines.current(), next);
            EXPECT_EQ(step, 3u);
            EXPECT_FALSE(next->has_unfinished()); // what waits is added after it
            events.push_back("took over");
        });
        waiting = arrive(2, 4, [&] { events.push_back("token"); });
        given_up = arrive(3, 400);
        state_->inbox.add_task([&] {
            EXPECT_EQ(state_->engines.current(), engine);
            loop_->abort(given_up);
        });
    });
    options_.on_output = [&](const engine::RequestOutput& delta) {
        const bool by_next = state_->engines.current() == next;
        if (by_next && delta.finish != FinishReason::kNone) state_->inbox.stop();
    };
    loop_->run();
    EXPECT_EQ(read_all(*old).endings, std::vector{FinishReason::kLength});
    EXPECT_EQ(read_all(*given_up).endings, std::vector{FinishReason::kAbort});
    const Read by_next = read_all(*waiting);
    EXPECT_EQ(by_next.tokens, std::vector<engine::TokenId>(4, 8));
    EXPECT_EQ(by_next.endings, std::vector{FinishReason::kLength});
    EXPECT_THAT(events, ElementsAre("took over", "token"));
    EXPECT_FALSE(state_->engines.is_pending());
    EXPECT_TRUE(state_->engines.release_replaced());
}

}  // namespace
}  // namespace patchbay::service::testing::engine_loop_test
