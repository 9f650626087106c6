// Steps in flight: placeholders for what they make, and pages that they may still write into.
#include "engine/loop/in_flight.hpp"

#include <gtest/gtest.h>

#include "kv/kv_cache.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::in_flight_test {
namespace {

constexpr uint32_t kMaxModelLen = 64;

InFlightStep step_of(Sequence& s, uint32_t tokens, uint32_t rows) {
    return {.items = {{&s, tokens, s.confirmed(), rows}}, .held = {}};
}

TEST(InFlightSteps, GivePlaceholdersToWhatGoesOn) {
    kv::KvCache kv(8, 4, kv::PrefixCaching::kOff, "model");
    InFlightSteps steps(kv, kMaxModelLen);
    SamplingParams p;
    p.max_tokens = 2;
    const auto s = sequence(1, 4, p);
    steps.push(step_of(*s, 4, 1));
    EXPECT_EQ(s->in_flight.tokens, 4u);
    EXPECT_EQ(s->in_flight.placeholders, 1u);
    EXPECT_EQ(s->remaining(), 1u);
    steps.push(step_of(*s, 1, 1)); // makes the last token: nothing can be built on it
    EXPECT_EQ(s->in_flight.placeholders, 1u);
    EXPECT_EQ(s->remaining(), 0u);

    steps.take_back_placeholders(steps.oldest());
    EXPECT_EQ(s->in_flight.tokens, 1u);
    EXPECT_EQ(s->in_flight.placeholders, 0u);
    steps.drop_oldest();
    EXPECT_EQ(steps.count(), 1u);
}

TEST(InFlightSteps, KeepThePagesOfWhatHasEnded) {
    kv::KvCache kv(8, 4, kv::PrefixCaching::kOff, "model");
    InFlightSteps steps(kv, kMaxModelLen);
    const auto s = sequence(1, 4);
    ASSERT_TRUE(kv.tables().grow(s->kv.table, 5));
    steps.push(step_of(*s, 4, 1));
    steps.leave(*s);
    EXPECT_TRUE(steps.oldest().items.empty());
    EXPECT_EQ(s->in_flight.tokens, 0u);
    EXPECT_EQ(kv.pool().used(), 2u) << "the step may still write into them";
    steps.drop_oldest();
    EXPECT_EQ(kv.pool().used(), 0u);
}

TEST(InFlightSteps, SayWhyTheyMustBeBack) {
    kv::KvCache kv(8, 4, kv::PrefixCaching::kOff, "model");
    InFlightSteps steps(kv, kMaxModelLen);
    const auto plain = sequence(1, 4), penalised = sequence(2, 4), structured = sequence(3, 4);
    penalised->sampling.history_reason = "history";
    structured->sampling.history_reason = "structured_output";
    InFlightStep step = step_of(*plain, 4, 1);
    EXPECT_EQ(steps.history_reason(), "");
    step.items.push_back({penalised.get(), 4, 4, 1});
    step.items.push_back({structured.get(), 2, 4, 0}); // a part of its prompt: it makes no token
    steps.push(std::move(step));
    EXPECT_EQ(steps.history_reason(), "history");
    steps.clear();
    step = step_of(*structured, 4, 1);
    step.items.push_back({penalised.get(), 4, 4, 1});
    steps.push(std::move(step));
    EXPECT_EQ(steps.history_reason(), "structured_output");
}

TEST(InFlightSteps, ArePoisonedOnlyByTheSequencesThatTheyCompute) {
    kv::KvCache kv(8, 4, kv::PrefixCaching::kOff, "model");
    InFlightSteps steps(kv, kMaxModelLen);
    const auto in = sequence(1, 4), out = sequence(2, 4);
    steps.push(step_of(*in, 4, 1));
    steps.poison(*out);
    EXPECT_FALSE(steps.oldest().is_poisoned);
    steps.poison(*in);
    EXPECT_TRUE(steps.oldest().is_poisoned);
}

}  // namespace
}  // namespace patchbay::engine::testing::in_flight_test
