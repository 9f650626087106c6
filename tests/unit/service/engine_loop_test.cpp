#include "service/engine_loop.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "unit/engine/on_end.hpp"
#include "unit/service/service_fixture.hpp"

namespace patchbay::service::testing {
namespace {

using engine::FinishReason;
using engine::testing::tiny_model;
using ::testing::ElementsAre;

// A loop that runs on the test's own thread until a task or an observer stops it.
class EngineLoops : public ::testing::Test {
  protected:
    void start(const config::EngineConfig& config = tiny_model()) {
        auto engine = make_engine(config, clock_);
        engine->observe(after_step_);
        state_ = std::make_unique<LoopState>(std::move(engine), 16);
        loop_ = std::make_unique<EngineLoop>(options_, *state_);
    }
    std::shared_ptr<Stream> arrive(uint64_t seed, uint32_t max_tokens, std::function<void()> on_ready = nullptr) {
        auto stream = std::make_shared<Stream>(1, 64, std::move(on_ready));
        EXPECT_TRUE(state_->inbox.add({request(seed, max_tokens), stream}));
        return stream;
    }
    void stop_when_idle() {
        after_step_.call = [this](const engine::StepReport& report) {
            if (report.queues.running_requests + report.queues.waiting_requests == 0) state_->inbox.stop();
        };
    }

    RealClock clock_;
    EngineThreadOptions options_;
    engine::testing::OnEnd after_step_;
    std::unique_ptr<LoopState> state_;
    std::unique_ptr<EngineLoop> loop_;
};

TEST_F(EngineLoops, ServeWhatIsInTheInboxUntilTheyAreStopped) {
    stop_when_idle();
    start();
    const auto one = arrive(1, 3), other = arrive(2, 5);
    loop_->run();
    EXPECT_EQ(read_all(*one).tokens.size(), 3u);
    EXPECT_EQ(read_all(*other).tokens.size(), 5u);
    EXPECT_EQ(state_->status.state, ServiceState::kStopped);
    EXPECT_EQ(state_->status.unfinished, 0u);
    EXPECT_GE(state_->status.steps, 5u);
}

TEST_F(EngineLoops, AbortWhatRunsWhenTheyAreStopped) {
    after_step_.call = [this](const engine::StepReport&) { state_->inbox.stop(); };
    start();
    const auto stream = arrive(1, 400);
    loop_->run();
    EXPECT_EQ(read_all(*stream).endings, std::vector{FinishReason::kAbort});
}

TEST_F(EngineLoops, FailWhatTheyDoNotTakeAnyMore) {
    start();
    bool called = false, ended = false; // from then on callers are refused, and nothing more comes
    const auto stream = arrive(1, 4, [&] { ended = state_->status.has_ended(); });
    state_->inbox.add_task([&](engine::Engine&) { called = true; });
    state_->inbox.stop();
    loop_->run();
    EXPECT_EQ(stream->failure()->text, "the engine was stopped");
    EXPECT_TRUE(ended);
    EXPECT_FALSE(called);
    EXPECT_TRUE(state_->inbox.take().tasks.empty());
}

TEST_F(EngineLoops, EndWithTheReasonOfAStepThatFails) {
    config::EngineConfig config = tiny_model();
    config.scheduler = {"fails_on_request", {{"overplans", "true"}}};
    config.engine.max_num_batched_tokens = 8; // fewer than the prompt has
    StatusCode code{};
    options_.on_output = [&](const engine::RequestOutput& out) {
        code = out.error_code;
        state_->inbox.stop();
    };
    start(config);
    const auto stream = arrive(1, 4);
    loop_->run();
    EXPECT_EQ(state_->status.state, ServiceState::kFailed); // and not stopped
    EXPECT_THAT(state_->status.reason, ::testing::HasSubstr("more than max_num_batched_tokens"));
    EXPECT_EQ(read_all(*stream).endings, std::vector{FinishReason::kError});
    EXPECT_EQ(code, StatusCode::kFailed) << "the scheduler failed, and nothing in the engine is broken";
}

TEST_F(EngineLoops, ThatFailDoNotTakeAnotherEngine) {
    config::EngineConfig config = tiny_model();
    config.scheduler = {"fails_on_request", {{"overplans", "true"}}};
    config.engine.max_num_batched_tokens = 8;
    start(config);
    const auto stream = arrive(1, 4);
    const std::shared_ptr<engine::Engine> next = make_engine(smaller_model(), clock_);
    bool took_over = false;
    state_->inbox.add_task([&](engine::Engine&) {
        state_->engines.begin(next, [&](engine::Engine&, engine::Engine&, uint64_t) { took_over = true; });
    });
    loop_->run();
    EXPECT_EQ(state_->status.state, ServiceState::kFailed);
    EXPECT_FALSE(took_over);
    EXPECT_NE(state_->engines.current(), next);
}

TEST_F(EngineLoops, ServeWhatCameBeforeTheOtherEngineByTheFirst) {
    const std::shared_ptr<engine::Engine> next = make_engine(smaller_model(), clock_);
    std::shared_ptr<Stream> late;
    after_step_.call = [&](const engine::StepReport& report) { // after the inbox of this turn was taken
        if (late || report.queues.running_requests + report.queues.waiting_requests > 0) return;
        late = arrive(5, 6);
        state_->engines.begin(next, [&](engine::Engine&, engine::Engine&, uint64_t) { state_->inbox.stop(); });
        state_->inbox.hold_arrivals();
    };
    start();
    const auto first = arrive(1, 3);
    loop_->run();
    EXPECT_EQ(state_->engines.current(), next);
    EXPECT_EQ(read_all(*late).tokens, expected_tokens(5, 6));
}

TEST_F(EngineLoops, TakeAnotherEngineWhenTheFirstHasNothingLeft) {
    start();
    std::vector<std::string> events;
    const auto old = arrive(1, 3);
    const std::shared_ptr<engine::Engine> next = make_engine(smaller_model(), clock_);
    std::shared_ptr<Stream> waiting, given_up;
    state_->inbox.add_task([&](engine::Engine&) {
        state_->engines.begin(next, [&](engine::Engine& engine, engine::Engine& replaced, uint64_t step) {
            EXPECT_EQ(&engine, next.get());
            EXPECT_NE(&replaced, next.get());
            EXPECT_GE(step, 3u);
            EXPECT_FALSE(engine.has_unfinished()); // what waits is added after it
            events.push_back("took over");
        });
        waiting = arrive(2, 4, [&] { events.push_back("token"); });
        given_up = arrive(3, 400);
        state_->inbox.add_task([&](engine::Engine& engine) {
            EXPECT_NE(&engine, next.get());
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
    EXPECT_EQ(read_all(*waiting).endings, std::vector{FinishReason::kLength});
    EXPECT_THAT(events, ElementsAre("took over", "token"));
    EXPECT_FALSE(state_->engines.is_pending());
    EXPECT_TRUE(state_->engines.release_replaced());
}

}  // namespace
}  // namespace patchbay::service::testing
