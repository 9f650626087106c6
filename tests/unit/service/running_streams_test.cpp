#include "service/running_streams.hpp"

#include <gmock/gmock.h>

#include "unit/service/fake_engine.hpp"
#include "unit/service/service_fixture.hpp"

namespace patchbay::service::testing::running_streams_test {
namespace {

using engine::FinishReason;

class StreamsOfAnEngine : public ::testing::Test {
  protected:
    std::shared_ptr<Stream> add(engine::Request r) {
        auto stream = std::make_shared<Stream>(r.sampling.n, 64, nullptr);
        streams_.add(*engine_, {std::move(r), stream});
        return stream;
    }
    void run() {
        while (engine_->has_unfinished()) ASSERT_TRUE(engine_->step());
    }

    EngineThreadOptions observers_;
    RunningStreams streams_{observers_};
    std::unique_ptr<FakeEngine> engine_ = std::make_unique<FakeEngine>();
};

TEST_F(StreamsOfAnEngine, ArriveWhenTheyWereSubmitted) {
    engine_->clock().wait_until_ns(500); // a step was under way
    engine::Request r = request(1, 3);
    r.arrival_ns = 200;
    r.deadline_ns = 900;
    uint64_t arrival_ns = 0, deadline_ns = 0;
    observers_.on_request = [&](engine::RequestId, const engine::Request& given) {
        arrival_ns = given.arrival_ns;
        deadline_ns = given.deadline_ns;
    };
    add(std::move(r));
    EXPECT_EQ(arrival_ns, 200u);
    EXPECT_EQ(deadline_ns, 900u);
}

TEST_F(StreamsOfAnEngine, GoWhenTheirRequestsEnd) {
    const auto one = add(request(1, 3)), other = add(request(2, 5));
    EXPECT_TRUE(one->id());
    EXPECT_EQ(streams_.size(), 2u);
    run();
    EXPECT_EQ(streams_.size(), 0u);
    EXPECT_EQ(read_all(*one).tokens.size(), 3u);
    EXPECT_EQ(read_all(*other).tokens.size(), 5u);
}

TEST_F(StreamsOfAnEngine, FailWithTheReasonOfARefusal) {
    engine_->refusal = invalid("prompt token 5000");
    const auto stream = add(request(1, 4));
    EXPECT_EQ(streams_.size(), 0u);
    EXPECT_FALSE(stream->id());
    EXPECT_EQ(stream->failure()->text, "prompt token 5000");
    EXPECT_EQ(stream->failure()->code, StatusCode::kInvalid);
}

TEST_F(StreamsOfAnEngine, ShowObserversWhatWasAcceptedAndEachDelta) {
    std::vector<engine::RequestId> accepted;
    int deltas = 0;
    observers_.on_request = [&](engine::RequestId id, const engine::Request& r) {
        accepted.push_back(id);
        EXPECT_EQ(r.prompt, request(1, 3).prompt);
    };
    observers_.on_output = [&](const engine::RequestOutput&) { deltas += 1; };
    engine_->refusal = fail("none");
    add(request(1, 4));
    engine_->refusal.reset();
    const auto stream = add(request(1, 3));
    run();
    EXPECT_EQ(accepted, std::vector{*stream->id()});
    EXPECT_EQ(deltas, 3);
}

TEST_F(StreamsOfAnEngine, EndWithAbortOneOrAll) {
    const auto one = add(request(1, 40)), other = add(request(2, 40)), third = add(request(3, 40));
    streams_.abort(*engine_, one);
    EXPECT_EQ(streams_.size(), 2u);
    streams_.abort(*engine_, one); // nothing
    streams_.abort_all(*engine_);
    EXPECT_EQ(streams_.size(), 0u);
    for (const auto& stream : {one, other, third})
        EXPECT_EQ(read_all(*stream).endings, std::vector{FinishReason::kAbort});
}

TEST_F(StreamsOfAnEngine, AreNotTakenForThoseOfAnEarlierEngine) {
    const auto old = add(request(1, 2));
    run();
    engine_ = std::make_unique<FakeEngine>();
    const auto now = add(request(2, 2));
    ASSERT_EQ(old->id(), now->id());
    streams_.abort(*engine_, old);
    run();
    EXPECT_EQ(read_all(*now).endings, std::vector{FinishReason::kLength});
}

TEST_F(StreamsOfAnEngine, FailTogetherWhereItCannotGoOn) {
    const auto one = add(request(1, 40)), other = add(request(2, 40));
    streams_.fail_all(fail(StatusCode::kInternal, "the step failed"));
    EXPECT_EQ(streams_.size(), 0u);
    for (const auto& stream : {one, other}) EXPECT_EQ(stream->failure()->text, "the step failed");
}

}  // namespace
}  // namespace patchbay::service::testing::running_streams_test
