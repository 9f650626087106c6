#include <gmock/gmock.h>

#include "experiment/workloads.hpp"
#include "workload_fixture.hpp"

namespace patchbay::experiment::workload_trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

TEST(Workload, TakesLengthsAndTimesFromATrace) {
    const Folder f;
    WorkloadSpec spec;
    spec.prompts =
        TracePrompts{f.file("t.csv", std::string(kHeader) + "2023-11-16 18:15:46,12,3\n2023-11-16 18:15:48,5,0\n"), {}};
    spec.arrivals = TraceArrivals{0.25};
    const Workload w = workload_of(spec);
    ASSERT_EQ(w.requests.size(), 2u);
    EXPECT_EQ(w.requests[0].prompt.size(), 12u);
    EXPECT_EQ(w.requests[0].sampling.max_tokens, 3u);
    EXPECT_EQ(w.requests[1].sampling.max_tokens, 1u); // an engine makes at least one
    EXPECT_EQ(w.requests[1].arrival_ns, 500'000'000u);
    spec.requests = 3;
    EXPECT_THAT(WorkloadSource::open(spec, byte_tokenizer(), {100, 128}).error(),
                HasSubstr("has 2 rows, the workload needs 3 requests"));
}

TEST(Workload, DeadlinesOfLaterTurnsOfATraceCountFromTheirOwnArrival) {
    const Folder f;
    WorkloadSpec spec;
    spec.prompts = TracePrompts{f.file("t.jsonl", "{\"at_s\": 0, \"prompt_tokens\": 3, \"output_tokens\": 2}\n"
                                                  "{\"at_s\": 100, \"session\": \"a\", \"prompt_tokens\": 3, "
                                                  "\"output_tokens\": 2}\n"
                                                  "{\"after_s\": 5, \"session\": \"a\", \"prompt_tokens\": 3, "
                                                  "\"output_tokens\": 2}\n"),
                                {}};
    spec.arrivals = TraceArrivals{};
    spec.deadline = {2, 2};
    const Workload w = workload_of(spec);
    ASSERT_EQ(w.requests.size(), 3u);
    EXPECT_EQ(w.requests[1].deadline_ns, 102'000'000'000u);
    EXPECT_EQ(w.requests[2].arrival_ns, 0u) << "it is known when it comes";
    EXPECT_EQ(w.requests[2].deadline_ns, 2'000'000'000u);
}

// Of the conversations of the second window three began before it: what is left of each is a session of its own, with
// the time of the row above.
TEST(Workload, OfATraceWithARateHasSoManySessionsASecondInEachWindow) {
    const Folder f;
    const std::string turn = "\"prompt_tokens\": 3, \"output_tokens\": 2}\n";
    std::string rows;
    for (const char* session : {"a", "b", "c", "d"})
        rows += "{\"at_s\": " + std::to_string(10 * (session[0] - 'a')) + ", \"session\": \"" + session + "\", " + turn;
    for (const char* session : {"a", "b", "c"})
        rows += std::string("{\"after_s\": 5, \"session\": \"") + session + "\", " + turn;
    rows += "{\"at_s\": 40, \"session\": \"e\", " + turn;
    WorkloadSpec spec = of_trace(f, rows);
    TraceArrivals at_rate;
    at_rate.rate = 2;
    spec.arrivals = at_rate;
    const auto source = WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, 2, 1);
    ASSERT_TRUE(source) << source.error();
    for (const uint32_t repeat : {0, 1}) {
        const auto requests = source->repeat(1, repeat).requests;
        ASSERT_EQ(requests.size(), 4u);
        for (const PlannedRequest& r : requests) EXPECT_FALSE(r.follows);
        EXPECT_EQ(requests[0].arrival_ns, 0u);
        EXPECT_EQ(requests[3].arrival_ns, 1'500'000'000u) << "three gaps at two a second, in window " << repeat;
    }
    spec.windows = SameWindow{};
    const Workload whole = workload_of(spec);
    EXPECT_EQ(whole.requests[4].follows, 0u);
    EXPECT_EQ(whole.requests[4].arrival_ns, 0u) << "it is known when it comes";
    EXPECT_EQ(whole.requests[7].arrival_ns, 2'000'000'000u) << "four gaps between five sessions";
}

TEST(Workloads, RefuseASwapAfterSoManyRequestsWhereOneFollowsAnother) {
    const Folder f;
    ExperimentSpec spec;
    spec.repeats = 1;
    spec.variants.resize(1);
    WorkloadSpec& workload = spec.variants[0].workload;
    workload.prompts = TracePrompts{
        f.file("t.jsonl", "{\"at_s\": 0, \"session\": \"a\", \"prompt_tokens\": 3, \"output_tokens\": 2}\n"
                          "{\"after_s\": 5, \"session\": \"a\", \"prompt_tokens\": 3, \"output_tokens\": 2}\n"),
        {}};
    workload.arrivals = TraceArrivals{};
    EXPECT_TRUE(Workloads::open(spec, byte_tokenizer(), {100, 128}));
    spec.variants[0].at.resize(1);
    spec.variants[0].at[0].request = 2;
    EXPECT_THAT(Workloads::open(spec, byte_tokenizer(), {100, 128}).error(),
                HasSubstr("request 2 follows an earlier one; say when with 't'"));
}

TEST(Workload, GivesEachRepeatAWindowOfTheTraceThatBeginsAtItsOwnStart) {
    const Folder f;
    WorkloadSpec spec;
    std::string csv(kHeader);
    for (int i = 0; i < 6; ++i) csv += "2023-11-16 18:15:4" + std::to_string(i) + "," + std::to_string(10 + i) + ",3\n";
    spec.prompts = TracePrompts{f.file("t.csv", csv), {}};
    spec.arrivals = TraceArrivals{};
    const auto lengths = [&](const WorkloadSource& source, uint32_t repeat) {
        std::vector<size_t> out;
        for (const PlannedRequest& r : source.repeat(1, repeat).requests) out.push_back(r.prompt.size());
        return out;
    };
    const auto source = WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, 3, 1);
    ASSERT_TRUE(source) << source.error();
    EXPECT_THAT(lengths(*source, 0), ElementsAre(10, 11));
    EXPECT_THAT(lengths(*source, 2), ElementsAre(14, 15));
    EXPECT_EQ(source->repeat(1, 2).requests[0].arrival_ns, 0u);
    EXPECT_EQ(source->repeat(1, 2).requests[1].arrival_ns, 1'000'000'000u);
    EXPECT_FALSE(source->shared_windows());
    spec.windows = SameWindow{};
    EXPECT_EQ(lengths(*WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, 3, 1), 2).size(), 6u);
    spec.windows = DrawnWindows{0.5};
    spec.requests = 3;
    const auto drawn = WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, 2, 1);
    ASSERT_TRUE(drawn) << drawn.error();
    const std::vector<size_t> first = lengths(*drawn, 0), second = lengths(*drawn, 1);
    const bool shared = std::ranges::find_first_of(first, second) != first.end();
    const auto windows = drawn->shared_windows();
    EXPECT_EQ(windows ? windows->independent : 2u, shared ? 1u : 2u);
}

TEST(Workload, MakesEqualBlocksOfATraceEqualTokens) {
    const Folder f;
    const WorkloadSpec spec =
        of_trace(f, "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 2, \"hash_ids\": [5, 9, 7]}\n"
                    "{\"timestamp\": 9, \"input_length\": 12, \"output_length\": 2, \"hash_ids\": [5, 9, 8]}\n",
                 {.block_tokens = 4});
    const Workload w = workload_of(spec);
    EXPECT_EQ(head(w.requests[0].prompt, 8), head(w.requests[1].prompt, 8));
    EXPECT_NE(w.requests[0].prompt[8] * 1000 + w.requests[0].prompt[9],
              w.requests[1].prompt[8] * 1000 + w.requests[1].prompt[9]);
    EXPECT_NE(head(w.requests[0].prompt, 4), Ids(w.requests[0].prompt.begin() + 4, w.requests[0].prompt.begin() + 8));
    EXPECT_EQ(w.requests[1].arrival_ns, 9'000'000u);
    EXPECT_NE(workload_of(spec, 1, 1).requests[0].prompt, w.requests[0].prompt) << "another repeat, other tokens";
}

TEST(Workload, TakesATracesTokensAndKeepsThemApartBeyondTheVocabulary) {
    const Folder f;
    const std::string line = "{\"arrival_time_ns\": 0, \"input_tok_ids\": [5, 6, 7], \"output_toks\": 4}\n";
    EXPECT_THAT(workload_of(of_trace(f, line)).requests[0].prompt, ElementsAre(5, 6, 7));
    const WorkloadSpec beyond = of_trace(
        f, line + "{\"arrival_time_ns\": 5, \"input_tok_ids\": [5, 90000, 90000, 90001], \"output_toks\": 4}\n");
    const auto source = WorkloadSource::open(beyond, byte_tokenizer(), {1000, 128});
    ASSERT_TRUE(source) << source.error();
    const Workload w = source->repeat(1, 0);
    const Ids& other = w.requests[1].prompt;
    EXPECT_EQ(w.requests[0].prompt[0], other[0]);
    EXPECT_EQ(other[1], other[2]);
    EXPECT_NE(other[2], other[3]);
    EXPECT_THAT(other, ::testing::Each(::testing::AllOf(::testing::Gt(0), ::testing::Lt(128))));
    EXPECT_THAT(source->notices(), ElementsAre(HasSubstr("beyond the vocabulary")));
}

TEST(Workload, TakesClassTenantAndPriorityFromATrace) {
    const Folder f;
    const WorkloadSpec spec =
        of_trace(f, "{\"at_s\": 0, \"prompt_tokens\": 4, \"output_tokens\": 3, \"class\": \"chat\", "
                    "\"tenant\": 2, \"priority\": -1, \"max_tokens\": 9}\n");
    const PlannedRequest r = workload_of(spec).requests[0];
    EXPECT_EQ(r.label, "chat");
    EXPECT_EQ(r.tenant, 2u);
    EXPECT_EQ(r.priority, -1);
    EXPECT_EQ(r.sampling.max_tokens, 9u);
    EXPECT_EQ(r.ends_after, 3u);
}

}  // namespace
}  // namespace patchbay::experiment::workload_trace_test
