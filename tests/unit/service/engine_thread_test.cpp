#include "service/engine_thread.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "host/probe.hpp"
#include "host/prober.hpp"
#include "paths.hpp"
#include "unit/engine/on_end.hpp"
#include "unit/service/service_fixture.hpp"

namespace patchbay::service::testing::engine_thread_test {
namespace {

using engine::FinishReason;
using engine::RequestOutput;
using engine::TokenId;
using namespace engine::testing;
using ::testing::HasSubstr;

class EngineThreads : public ::testing::Test {
  protected:
    EngineThread& start(EngineThreadOptions options = {}, const config::EngineConfig& config = tiny_model()) {
        auto engine = make_engine(config, clock_);
        engine->observe(after_step_);
        service_ = std::make_unique<EngineThread>(std::move(engine), std::move(options));
        return *service_;
    }
    std::shared_ptr<Stream> submit(engine::Request r) {
        auto stream = service_->submit(std::move(r));
        if (!stream) throw std::runtime_error(stream.error());
        return *stream;
    }

    RealClock clock_;
    OnEnd after_step_;
    std::unique_ptr<EngineThread> service_;
};

TEST_F(EngineThreads, GiveRequestsOfManyThreadsTheTokensOfAPlainLoop) {
    constexpr uint64_t kThreads = 4, kRequests = 6;
    EngineThread& service = start();
    std::vector<std::vector<Read>> got(kThreads, std::vector<Read>(kRequests));
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            std::vector<std::shared_ptr<Stream>> streams;
            for (uint64_t i = 0; i < kRequests; ++i)
                streams.push_back(*service.submit(request(t * kRequests + i, 5 + static_cast<uint32_t>(i))));
            for (uint64_t i = 0; i < kRequests; ++i) got[t][i] = read_all(*streams[i]);
        });
    for (std::thread& thread : threads) thread.join();
    for (uint64_t t = 0; t < kThreads; ++t)
        for (uint64_t i = 0; i < kRequests; ++i) {
            EXPECT_EQ(got[t][i].tokens, expected_tokens(t * kRequests + i, 5 + static_cast<uint32_t>(i)));
            EXPECT_EQ(got[t][i].endings, std::vector{FinishReason::kLength});
        }
}

TEST_F(EngineThreads, StepOnceMoreAfterAnAbortThatLeavesNothing) {
    std::promise<void> taken, aborted, idle;
    std::atomic<bool> said{false};
    after_step_.call = [&](const engine::StepReport& report) {
        if (report.queues.running_requests == 0 && !said.exchange(true)) idle.set_value();
    };
    start({.on_request = [&](auto, const auto&) { // the turn has taken its tasks
        taken.set_value();
        aborted.get_future().wait();
    }});
    const auto stream = submit(request(1, 400));
    taken.get_future().wait();
    service_->abort(stream); // for the next turn, with the boundary that reports it
    aborted.set_value();
    EXPECT_EQ(idle.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    EXPECT_EQ(read_all(*stream).endings, std::vector{FinishReason::kAbort});
}

TEST_F(EngineThreads, KeepFewDeltasForASlowReaderAndLoseNone) {
    EngineThread& service = start({.max_queued_deltas = 3});
    const auto stream = submit(request(7, 40));
    service.drain(); // the loop has ended the request though nothing was read
    const Read got = read_all(*stream);
    EXPECT_EQ(got.tokens, expected_tokens(7, 40));
    EXPECT_EQ(got.deltas, 3u);
    EXPECT_EQ(got.endings, std::vector{FinishReason::kLength});
    EXPECT_TRUE(stream->finished());
}

TEST_F(EngineThreads, KeepTheOutputsOfARequestApart) {
    EngineThread& service = start({.max_queued_deltas = 2});
    engine::Request r = request(3, 9);
    r.sampling = seeded(11, 9);
    r.sampling.n = 3;
    const auto stream = submit(r);
    service.drain();
    std::map<uint32_t, std::vector<TokenId>> got;
    uint32_t endings = 0;
    while (const auto delta = stream->next()) {
        got[delta->index].insert(got[delta->index].end(), delta->tokens.begin(), delta->tokens.end());
        endings += delta->finish != FinishReason::kNone;
    }
    EXPECT_EQ(endings, 3u);
    Harness h(tiny_model());
    const auto id = h.add(r);
    h.run_all();
    EXPECT_EQ(got[0], h.outputs[id].tokens);
    EXPECT_EQ(got[1], (h.others[{id, 1}].tokens));
    EXPECT_EQ(got[2], (h.others[{id, 2}].tokens));
}

TEST_F(EngineThreads, TellWhyARequestWasRefusedAndServeTheOthers) {
    start();
    engine::Request wrong = request(1, 4);
    wrong.prompt = {5000};
    const auto refused = submit(wrong), served = submit(request(1, 4));
    const auto id = refused->accepted();
    ASSERT_FALSE(id);
    EXPECT_EQ(id.code(), StatusCode::kInvalid);
    EXPECT_THAT(id.error(), HasSubstr("prompt token 5000"));
    EXPECT_FALSE(refused->next());
    EXPECT_EQ(read_all(*served).tokens, expected_tokens(1, 4));
    engine::Request empty = request(1, 4);
    empty.sampling.n = 0;
    EXPECT_THAT(submit(empty)->accepted().error(), HasSubstr("n is 0"));
}

TEST_F(EngineThreads, RefuseAsExhaustedWhatTheQueueHasNoRoomFor) {
    config::EngineConfig config = tiny_model();
    config.engine.max_num_seqs = 1;
    config.engine.max_waiting = 1;
    EngineThread& service = start({}, config);
    std::vector<std::shared_ptr<Stream>> streams;
    service.call([&](engine::Engine&) { // while the loop waits here, all of them arrive
        for (uint64_t i = 0; i < 4; ++i) streams.push_back(*service.submit(request(i, 8)));
    });
    std::map<StatusCode, int> refused;
    int served = 0;
    for (const auto& stream : streams) {
        const auto id = stream->accepted();
        if (id) served += 1;
        else refused[id.code()] += 1;
    }
    EXPECT_EQ(served, 1) << "it waits for the next step, and fills the queue";
    EXPECT_EQ(refused, (std::map<StatusCode, int>{{StatusCode::kExhausted, 3}}));
}

TEST_F(EngineThreads, RefuseWhatTheInboxHasNoRoomFor) {
    EngineThread& service = start({.max_inbox = 2});
    service.call([&](engine::Engine&) {
        EXPECT_TRUE(service.submit(request(1, 2)));
        EXPECT_TRUE(service.submit(request(2, 2)));
        const auto third = service.submit(request(3, 2));
        ASSERT_FALSE(third);
        EXPECT_EQ(third.code(), StatusCode::kExhausted);
    });
    service.drain();
}

TEST_F(EngineThreads, CountLatenciesAndDeadlinesFromTheSubmission) {
    VirtualClock clock;
    uint64_t arrival_ns = 0, deadline_ns = 0;
    EngineThread service(make_engine(tiny_model(), clock), {.on_request = [&](auto, const engine::Request& r) {
        arrival_ns = r.arrival_ns;
        deadline_ns = r.deadline_ns;
    }});
    service.call([&](engine::Engine&) {
        clock.advance_ns(500);
        engine::Request r = request(1, 2);
        r.deadline_ns = 10'000;
        EXPECT_TRUE(service.submit(std::move(r)));
        clock.advance_ns(1000); // as a step under way does
    });
    service.drain();
    EXPECT_EQ(arrival_ns, 500u);
    EXPECT_EQ(deadline_ns, 10'500u);
}

TEST_F(EngineThreads, EndAnAbortedStreamWithAbort) {
    std::promise<void> begun, aborted;
    std::atomic<bool> waits{true};
    EngineThread& service = start({.on_output = [&](const engine::RequestOutput&) {
        if (!waits.exchange(false)) return;
        begun.set_value();
        aborted.get_future().wait();
    }});
    const auto stream = submit(request(2, 400));
    begun.get_future().wait(); // it runs
    service.abort(stream);
    aborted.set_value();
    EXPECT_EQ(read_all(*stream).endings, std::vector{FinishReason::kAbort});
    service.abort(stream); // nothing happens any more
    service.drain();
    EXPECT_EQ(service.status().unfinished, 0u);
}

// The requests that run end with the engine that they have; those that come meanwhile get the other one.
TEST_F(EngineThreads, GoOnWithAnotherEngine) {
    std::promise<void> begun, go_on;
    std::atomic<bool> waits{true};
    EngineThread& service = start({.on_output = [&](const engine::RequestOutput&) {
        if (!waits.exchange(false)) return;
        begun.set_value();
        go_on.get_future().wait();
    }});
    const auto old = submit(request(2, 40));
    begun.get_future().wait(); // it runs
    const auto late = submit(request(5, 6)); // waits for the step under way to end
    const std::shared_ptr<engine::Engine> next = make_engine(smaller_model(), clock_);
    uint64_t last_step = 0;
    auto replaced = std::async(std::launch::async, [&] {
        return service.replace(next, [&](engine::Engine& engine, engine::Engine& before, uint64_t step) {
            EXPECT_EQ(&engine, next.get());
            EXPECT_NE(&before, next.get());
            last_step = step;
        });
    });
    while (!service.is_replacing()) std::this_thread::yield();
    const auto waiting = submit(request(3, 9)), given_up = submit(request(4, 400));
    service.abort(given_up);
    go_on.set_value();
    EXPECT_EQ(read_all(*old).tokens, expected_tokens(2, 40));
    EXPECT_EQ(read_all(*late).tokens, expected_tokens(5, 6)) << "its prompt is of the engine that was there";
    EXPECT_EQ(read_all(*given_up).endings, std::vector{FinishReason::kAbort});
    EXPECT_EQ(given_up->accepted().code(), StatusCode::kCancelled);
    EXPECT_TRUE(replaced.get());
    EXPECT_GE(last_step, 40u);
    Harness alone(smaller_model());
    const auto expected = alone.run(alone.add(request(3, 9))).tokens;
    EXPECT_NE(expected, expected_tokens(3, 9));
    EXPECT_EQ(read_all(*waiting).tokens, expected);
    service.abort(old); // its id may be that of another request by now
    service.call([&](engine::Engine& engine) { EXPECT_EQ(&engine, next.get()); });
}

TEST_F(EngineThreads, ThatAreStoppedDoNotTakeAnotherEngine) {
    EngineThread& service = start();
    const auto endless = submit(request(2, 400));
    const std::shared_ptr<engine::Engine> next = make_engine(smaller_model(), clock_);
    const auto nothing = [](auto&, auto&, uint64_t) {};
    auto replaced = std::async(std::launch::async, [&] { return service.replace(next, nothing); });
    service.stop();
    (void)replaced.get(); // it ends, whichever came first
    EXPECT_EQ(service.replace(make_engine(tiny_model(), clock_), nothing).error(), "the engine has stopped");
}

TEST_F(EngineThreads, DrainFinishesWhatIsThereAndTakesNothingMore) {
    EngineThread& service = start();
    const auto stream = submit(request(4, 30));
    service.drain();
    EXPECT_EQ(service.status().state, ServiceState::kDraining);
    EXPECT_EQ(read_all(*stream).tokens, expected_tokens(4, 30));
    const auto late = service.submit(request(5, 3));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.code(), StatusCode::kUnavailable);
    EXPECT_THAT(late.error(), HasSubstr("draining"));
}

TEST_F(EngineThreads, StopEndsEveryStream) {
    EngineThread& service = start();
    const auto stream = submit(request(6, 400));
    std::vector<std::shared_ptr<Stream>> others; // so many that they cannot all have finished when it stops
    for (int i = 0; i < 300; ++i) others.push_back(submit(request(6, 400)));
    ASSERT_TRUE(stream->next());
    service.stop();
    std::vector<FinishReason> endings;
    for (const auto& other : others) {
        endings = read_all(*other).endings;
        EXPECT_TRUE(endings.size() == 1 || other->failure()); // that the engine never saw
        EXPECT_TRUE(other->finished());
    }
    EXPECT_TRUE(others.back()->failure() || endings == std::vector{FinishReason::kAbort});
    EXPECT_EQ(service.status().state, ServiceState::kStopped);
    EXPECT_FALSE(service.call([](engine::Engine&) {}));
    EXPECT_FALSE(service.submit(request(6, 4)));
    service.stop(); // again: nothing
    service.wait();
}

TEST_F(EngineThreads, ReportAStepThatShowsWhatAnAbortHasFreed) {
    std::atomic<uint32_t> running = 0;
    after_step_.call = [&](const engine::StepReport& report) { running = report.queues.running_requests; };
    EngineThread& service = start();
    const auto stream = submit(request(2, 400));
    ASSERT_TRUE(stream->next());
    service.abort(stream);
    read_all(*stream);
    while (running != 0) std::this_thread::yield(); // though nothing is left to compute
}

TEST_F(EngineThreads, PrepareRequestsBesideTheSteps) {
    EngineThread& service = start();
    engine::Request r = request(2, 4);
    EXPECT_TRUE(service.prepare(r));
    r.sampling.structured_outputs.emplace().regex = "(";
    const auto refused = service.prepare(r);
    ASSERT_FALSE(refused); // this engine has no tokenizer to compile one for
    EXPECT_THAT(refused.error(), HasSubstr("tokenizer"));
}

TEST_F(EngineThreads, EndStreamsWithTheReasonWhereTheEngineCannotGoOn) {
    config::EngineConfig config = tiny_model();
    config.scheduler = {"fails_on_request", {{"overplans", "true"}}};
    config.engine.max_num_batched_tokens = 8; // fewer than the prompt has
    EngineThread& service = start({}, config);
    const auto stream = submit(request(8, 5));
    const Read got = read_all(*stream);
    EXPECT_EQ(got.endings, std::vector{FinishReason::kError});
    service.wait();
    service.drain();
    EXPECT_EQ(service.status().state, ServiceState::kFailed);
    const auto late = service.submit(request(8, 5));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.code(), StatusCode::kUnavailable);
    EXPECT_THAT(late.error(), HasSubstr("more than max_num_batched_tokens"));
}

TEST_F(EngineThreads, SwapWhileStreamsRunAndWhileNothingDoes) {
    static host::Prober prober(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    EngineThread& service = start();
    const auto to = [&](const char* name) {
        return service.swap({engine::SwapSlot::kScheduler, {name, {}}, registry(), prober});
    };
    const auto idle = to("sjf");
    while (service.status().steps == 0) std::this_thread::yield(); // it passes a boundary though nothing runs
    std::vector<std::shared_ptr<Stream>> streams;
    for (uint64_t i = 0; i < 8; ++i) streams.push_back(submit(request(i, 60)));
    const auto busy = to("fcfs");
    for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(read_all(*streams[i]).tokens, expected_tokens(i, 60));
    EXPECT_EQ(idle->record().state, host::SwapState::kCommitted);
    while (busy->record().state == host::SwapState::kPosted) std::this_thread::yield(); // as above
    const host::SwapState last = busy->record().state;
    EXPECT_TRUE(last == host::SwapState::kCommitted || last == host::SwapState::kOnProbation)
        << busy->record().text();
}

TEST_F(EngineThreads, ShowObserversEveryRequestDeltaAndStep) {
    std::atomic<int> requests = 0, deltas = 0, steps = 0;
    after_step_.call = [&](const engine::StepReport&) { steps += 1; };
    EngineThread& service = start({.on_request = [&](engine::RequestId, const engine::Request&) { requests += 1; },
                                   .on_output = [&](const RequestOutput&) { deltas += 1; }});
    const auto a = submit(request(1, 5)), b = submit(request(2, 5));
    service.drain();
    EXPECT_EQ(requests, 2);
    EXPECT_EQ(deltas, 10);
    EXPECT_EQ(static_cast<uint64_t>(steps), service.status().steps);
}

TEST_F(EngineThreads, CallAReaderBackWhereSomethingCame) {
    std::atomic<int> calls = 0;
    EngineThread& service = start();
    const auto stream = *service.submit(request(9, 6), [&] { calls += 1; });
    service.drain();
    EXPECT_GE(calls, 1);
    EXPECT_LE(calls, 6);
    size_t tokens = 0;
    while (const auto delta = stream->try_next()) tokens += delta->tokens.size();
    EXPECT_EQ(tokens, 6u);
}

}  // namespace
}  // namespace patchbay::service::testing::engine_thread_test
