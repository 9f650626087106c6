#include "experiment/traces/description.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace patchbay::experiment::trace_description_test {
namespace {

using namespace testing;

TraceDescription description_of(const std::string& text, const TraceOptions& options = {}) {
    const auto trace = parse_trace(text, "t", options);
    EXPECT_TRUE(trace) << trace.error();
    return describe(*trace);
}

std::string vidur(const std::vector<std::string>& rows) {
    std::string out = "arrived_at,num_prefill_tokens,num_decode_tokens\n";
    for (const std::string& r : rows) out += r + "\n";
    return out;
}

TEST(TraceDescription, HasRatesBurstinessAndLengths) {
    std::vector<std::string> rows;
    for (int i = 0; i <= 40; ++i) rows.push_back(std::to_string(i) + "," + std::to_string(100 + i) + ",7");
    const TraceDescription d = description_of(vidur(rows));
    EXPECT_EQ(d.requests, 41u);
    EXPECT_DOUBLE_EQ(d.seconds, 40);
    EXPECT_DOUBLE_EQ(d.mean_rate, 1);
    EXPECT_NEAR(d.gap_cv, 0, 1e-9);
    ASSERT_EQ(d.rates.size(), 10u);
    EXPECT_THAT(d.rates, Each(DoubleEq(1))) << "the mean is that of the parts";
    EXPECT_EQ(d.lengths[0].name, "prompt");
    EXPECT_DOUBLE_EQ(d.lengths[0].quantiles[50], 120);
    EXPECT_DOUBLE_EQ(d.lengths[0].quantiles[100], 140);
    EXPECT_DOUBLE_EQ(d.lengths[1].mean, 7);
    EXPECT_EQ(d.known_tokens, 0u);
    const TraceDescription bursts = description_of(vidur({"0,1,1", "0,1,1", "2,1,1", "2,1,1", "4,1,1"}));
    EXPECT_DOUBLE_EQ(bursts.gap_cv, 1) << "gaps 0, 2, 0, 2";
}

TEST(TraceDescription, CountsWhatPromptsShare) {
    const TraceDescription moon = description_of(
        "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 1, \"hash_ids\": [1, 2, 3]}\n"
        "{\"timestamp\": 1, \"input_length\": 11, \"output_length\": 1, \"hash_ids\": [1, 2, 4]}\n"
        "{\"timestamp\": 2, \"input_length\": 8, \"output_length\": 1, \"hash_ids\": [9, 2]}\n",
        {.block_tokens = 4});
    EXPECT_EQ(moon.known_tokens, 29u);
    EXPECT_EQ(moon.shared_tokens, 8u) << "block 2 after 9 is another prefix";
    const TraceDescription own = description_of(
        "{\"at_s\": 0, \"prompt_tokens\": 50, \"prefix\": \"a\", \"prefix_tokens\": 20, \"output_tokens\": 1}\n"
        "{\"at_s\": 0, \"prompt_tokens\": 50, \"prefix\": \"a\", \"prefix_tokens\": 30, \"output_tokens\": 1}\n"
        "{\"at_s\": 0, \"prompt_tokens\": 50, \"prefix\": \"a\", \"prefix_tokens\": 30, \"output_tokens\": 1}\n");
    EXPECT_EQ(own.shared_tokens, 50u);
}

TEST(TraceDescription, HasSessionsAndClassesTheMostFrequentFirst) {
    const TraceDescription d = description_of(
        "{\"at_s\": 0, \"prompt_tokens\": 5, \"output_tokens\": 1, \"session\": \"s\", \"class\": \"a\"}\n"
        "{\"after_s\": 1, \"prompt_tokens\": 7, \"output_tokens\": 2, \"session\": \"s\", \"class\": \"b\"}\n"
        "{\"at_s\": 9, \"prompt_tokens\": 9, \"output_tokens\": 4, \"class\": \"b\"}\n");
    EXPECT_EQ(d.sessions, 1u);
    EXPECT_EQ(d.turns, 2u);
    ASSERT_EQ(d.classes.size(), 2u);
    EXPECT_EQ(d.classes[0].name, "b");
    EXPECT_DOUBLE_EQ(d.classes[0].prompt_mean, 8);
    EXPECT_DOUBLE_EQ(d.classes[0].output_mean, 3);
    EXPECT_EQ(json_of(d)["classes"][1]["requests"], 1);
}

}  // namespace
}  // namespace patchbay::experiment::trace_description_test
