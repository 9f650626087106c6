#include "service/stream.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <string>

namespace patchbay::service::stream_test {
namespace {

using engine::FinishReason;

TEST(Streams, EndEachOutputOfARequestThatNoEngineHasHad) {
    int calls = 0;
    Stream stream(3, 1, [&] { calls += 1; });
    EXPECT_FALSE(stream.id());
    stream.abort();
    EXPECT_FALSE(stream.finished()); // the endings are still to be read
    for (uint32_t i = 0; i < 3; ++i) {
        const auto last = stream.try_next();
        ASSERT_TRUE(last);
        EXPECT_EQ(last->index, i);
        EXPECT_EQ(last->finish, FinishReason::kAbort);
    }
    EXPECT_TRUE(stream.finished());
    EXPECT_FALSE(stream.failure());
    EXPECT_EQ(calls, 1); // something was there from the first one on
}

// Someone waits already in the one case, and asks later in the other.
TEST(Streams, ThatAreAbortedBeforeAnEngineHasThemWereNotAccepted) {
    Stream stream(2, 4, nullptr);
    auto waits = std::async(std::launch::async, [&] { return stream.accepted(); });
    stream.abort();
    const bool answered = waits.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    if (!answered) stream.accept(1);
    EXPECT_TRUE(answered);
    EXPECT_EQ(waits.get().code(), StatusCode::kCancelled);
    EXPECT_EQ(stream.accepted().code(), StatusCode::kCancelled);
}

TEST(Streams, OfNoOutputsAreGivenTheirFailure) {
    Stream stream(0, 4, nullptr);
    EXPECT_FALSE(stream.finished());
    stream.fail(fail("n is 0"));
    ASSERT_TRUE(stream.failure());
    EXPECT_EQ(stream.accepted().error(), "n is 0");
    EXPECT_FALSE(stream.next());
}

TEST(Streams, KeepWhatCameBeforeAFailure) {
    Stream stream(1, 4, nullptr);
    stream.accept(7);
    EXPECT_EQ(stream.id(), 7u);
    engine::RequestOutput delta;
    delta.tokens = {1, 2};
    EXPECT_FALSE(stream.push(delta));
    stream.fail(fail(StatusCode::kInternal, "the step failed"));
    EXPECT_EQ(*stream.accepted(), 7u);
    EXPECT_EQ(stream.next()->tokens, delta.tokens);
    EXPECT_FALSE(stream.next());
    EXPECT_EQ(stream.failure()->text, "the step failed");
}

TEST(Streams, MergeWhatASlowReaderHasNotReadAndCopyOnlyWhatIsNew) {
    Stream stream(1, 1, nullptr);
    for (int i = 0; i < 100; ++i) {
        engine::RequestOutput delta;
        delta.tokens = {i};
        delta.logprobs.resize(1);
        delta.text = "a";
        delta.time_ns = static_cast<uint64_t>(i);
        EXPECT_FALSE(stream.push(delta));
    }
    const auto all = stream.try_next();
    ASSERT_TRUE(all);
    EXPECT_FALSE(stream.try_next());
    EXPECT_EQ(all->text, std::string(100, 'a'));
    EXPECT_EQ(all->tokens.size(), 100u);
    EXPECT_EQ(all->tokens.back(), 99);
    EXPECT_EQ(all->logprobs.size(), 100u);
    EXPECT_EQ(all->time_ns, 99u) << "of the last one";
    EXPECT_GT(all->text.capacity(), all->text.size()) << "it grows in place: each delta would copy all before it";
}

TEST(Streams, ThatHaveEndedDoNotFail) {
    Stream stream(1, 4, nullptr);
    engine::RequestOutput last;
    last.finish = FinishReason::kLength;
    EXPECT_TRUE(stream.push(last));
    stream.fail(fail("too late"));
    EXPECT_FALSE(stream.failure());
    EXPECT_EQ(stream.next()->finish, FinishReason::kLength);
}

}  // namespace
}  // namespace patchbay::service::stream_test
