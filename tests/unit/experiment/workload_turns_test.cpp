#include <gmock/gmock.h>

#include <map>

#include "workload_fixture.hpp"

namespace patchbay::experiment::workload_turns_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTalks =
    R"([{"conversations": [{"from": "human", "value": "ab"}, {"from": "gpt", "value": "xyz"},
                           {"from": "human", "value": "cd"}, {"from": "gpt", "value": "uv"}]},
        {"conversations": [{"from": "human", "value": "efg"}, {"from": "gpt", "value": "w"}]}])";

TEST(Workload, MakesConversationsOfTurnsThatFollowOneAnother) {
    const Folder f;
    WorkloadSpec spec = of_trace(f, kTalks);
    EXPECT_THAT(WorkloadSource::open(spec, byte_tokenizer(), {100, 128}).error(), HasSubstr("has no times"));
    spec.arrivals = DeterministicArrivals{2};
    spec.sessions.think = FixedTime{3};
    const Workload w = workload_of(spec);
    ASSERT_EQ(w.requests.size(), 3u);
    EXPECT_THAT(w.requests[0].prompt, ElementsAre('a', 'b'));
    EXPECT_EQ(w.requests[0].sampling.max_tokens, 3u);
    EXPECT_FALSE(w.requests[0].follows);
    EXPECT_EQ(w.requests[1].follows, 0u);
    EXPECT_TRUE(w.requests[1].continues);
    EXPECT_EQ(w.requests[1].think_ns, 3'000'000'000u);
    EXPECT_THAT(w.requests[1].prompt, ElementsAre('c', 'd')) << "what was said is known only when it is";
    EXPECT_FALSE(w.requests[2].follows);
    EXPECT_EQ(w.requests[2].arrival_ns, 500'000'000u) << "the second session's";
    spec.sessions.history = History::kRecorded;
    const Workload recorded = workload_of(spec);
    EXPECT_THAT(recorded.requests[1].prompt, ElementsAre('a', 'b', 'x', 'y', 'z', 'c', 'd'));
    EXPECT_FALSE(recorded.requests[1].continues);
    EXPECT_EQ(recorded.requests[1].follows, 0u);
}

TEST(Workload, BeginsATurnAnewWhereItsHistoryDoesNotFit) {
    const Folder f;
    WorkloadSpec spec = of_trace(f, kTalks);
    spec.arrivals = AllAtOnce{};
    const Workload w = workload_of(spec, 1, 0, {8, 128}); // 2 + 3 of the first, 2 + 2 of the second
    EXPECT_FALSE(w.requests[1].continues);
    EXPECT_EQ(w.requests[1].follows, 0u);
    EXPECT_EQ(w.clipped.histories, 1u);
    EXPECT_TRUE(workload_of(spec, 1, 0, {9, 128}).requests[1].continues);
}

TEST(Workload, CutsTheOutputsOfAllTurnsOfAConversation) {
    WorkloadSpec spec = synthetic(6, FixedLength{4}, FixedLength{7});
    spec.sessions.turns = FixedLength{3};
    spec.max_output_tokens = 2;
    spec.arrivals = DeterministicArrivals{1};
    const Workload w = workload_of(spec, 1, 0, {18, 128}); // 3 · 4 + 3 · 2
    for (uint32_t i = 0; i < 6; ++i) {
        EXPECT_EQ(w.requests[i].sampling.max_tokens, 2u) << i;
        EXPECT_EQ(w.requests[i].continues, i % 3 != 0) << i;
    }
    EXPECT_EQ(w.clipped.outputs, 6u);
    EXPECT_EQ(w.clipped.output_tokens, 30u);
    EXPECT_EQ(w.clipped.histories, 0u);
    spec.max_output_tokens = 4; // of which the model holds 3 beside half of a prompt
    const Clipping twice = workload_of(spec, 1, 0, {5, 128}).clipped;
    EXPECT_EQ(twice.outputs, 6u);
    EXPECT_EQ(twice.output_tokens, 24u);
}

TEST(Workload, DrawsSessionsOfTurns) {
    WorkloadSpec spec = synthetic(10, FixedLength{4}, FixedLength{2});
    spec.sessions.turns = FixedLength{3};
    spec.arrivals = DeterministicArrivals{1};
    const Workload w = workload_of(spec);
    for (uint32_t i = 0; i < 10; ++i) {
        EXPECT_EQ(w.requests[i].follows.has_value(), i % 3 != 0) << i;
        if (i % 3 != 0) {
            EXPECT_EQ(w.requests[i].follows, i - 1);
        }
    }
    EXPECT_EQ(w.requests[9].arrival_ns, 3'000'000'000u);
    spec.sessions.history = History::kRecorded;
    const Workload recorded = workload_of(spec);
    EXPECT_EQ(recorded.requests[2].prompt.size(), 3 * 4 + 2 * 2u);
    EXPECT_EQ(head(recorded.requests[2].prompt, 10), recorded.requests[1].prompt);
}

TEST(Workload, OfAClosedLoopHasOneRequestAUserAtATime) {
    WorkloadSpec spec = synthetic(7, FixedLength{4}, FixedLength{2});
    spec.arrivals = ClosedLoop{3, FixedTime{0.5}};
    const Workload w = workload_of(spec);
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_FALSE(w.requests[i].follows);
        EXPECT_EQ(w.requests[i].arrival_ns, 500'000'000u);
    }
    for (uint32_t i = 3; i < 7; ++i) {
        EXPECT_EQ(w.requests[i].follows, i - 3);
        EXPECT_FALSE(w.requests[i].continues);
        EXPECT_EQ(w.requests[i].think_ns, 500'000'000u);
    }
    spec.sessions.turns = FixedLength{2}; // a user's next session begins after the last turn of the one before
    spec.arrivals = ClosedLoop{2, FixedTime{0}};
    const Workload turns = workload_of(spec);
    EXPECT_EQ(turns.requests[4].follows, 1u);
    EXPECT_FALSE(turns.requests[4].continues);
    EXPECT_EQ(turns.requests[5].follows, 4u);
    EXPECT_TRUE(turns.requests[5].continues);
}

TEST(Workload, PutsASharedPrefixBeforeThePromptsOfASession) {
    WorkloadSpec spec = synthetic(400, FixedLength{3}, FixedLength{2});
    spec.shared_prefixes = {.number = 4, .tokens = FixedLength{5}, .exponent = 0, .share = 0.5};
    const Workload w = workload_of(spec);
    std::map<Ids, int> prefixes;
    uint32_t with = 0;
    for (const PlannedRequest& r : w.requests) {
        if (r.prompt.size() == 3) continue;
        ASSERT_EQ(r.prompt.size(), 8u);
        with += 1;
        prefixes[head(r.prompt, 5)] += 1;
    }
    EXPECT_EQ(prefixes.size(), 4u);
    EXPECT_NEAR(with, 200, 40);
    spec.max_prompt_tokens = 4;
    for (const PlannedRequest& r : workload_of(spec).requests) EXPECT_LE(r.prompt.size(), 4u);
}

}  // namespace
}  // namespace patchbay::experiment::workload_turns_test
