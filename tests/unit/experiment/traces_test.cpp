#include "experiment/traces/trace.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "paths.hpp"

namespace patchbay::experiment::traces_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr uint64_t kMs = 1'000'000;

Trace trace_of(const std::string& text, const TraceOptions& options = {}) {
    auto trace = parse_trace(text, "t", options);
    EXPECT_TRUE(trace) << trace.error();
    return trace ? *std::move(trace) : Trace{};
}

std::string error_of(const std::string& text, const TraceOptions& options = {}, const InputLimits& limits = {}) {
    const auto trace = parse_trace(text, "t", options, limits);
    EXPECT_FALSE(trace);
    return trace ? "" : trace.error();
}

// (ms, prompt, output) of each row.
std::vector<std::array<uint64_t, 3>> rows_of(const Trace& trace) {
    std::vector<std::array<uint64_t, 3>> out;
    for (const TraceRow& r : trace.rows) out.push_back({r.at_ns / kMs, r.prompt_tokens, r.output_tokens});
    return out;
}
using Row = std::array<uint64_t, 3>;

const std::string kAzure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

TEST(Traces, OfCsvAreKnownByTheirHeaders) {
    const Trace azure = trace_of(kAzure + "2023-11-16 23:59:59.5,10,1\r\n2023-11-17 00:00:00.25,20,2\n");
    EXPECT_EQ(azure.format, TraceFormat::kAzure);
    EXPECT_THAT(rows_of(azure), ElementsAre(Row{0, 10, 1}, Row{750, 20, 2}));
    const Trace later = trace_of(kAzure + "2024-05-10 00:00:00.009930+00:00,10,1\n2024-05-10T00:00:01.009930Z,2,2\n");
    EXPECT_THAT(rows_of(later), ElementsAre(Row{0, 10, 1}, Row{1000, 2, 2}));
    const Trace vidur = trace_of("arrived_at,num_prefill_tokens,num_decode_tokens,pd_ratio\n1.5,30,4,7.5\n2,5,6,1\n");
    EXPECT_EQ(vidur.format, TraceFormat::kVidur);
    EXPECT_THAT(rows_of(vidur), ElementsAre(Row{0, 30, 4}, Row{500, 5, 6}));
    const Trace lengths = trace_of("num_prefill_tokens,num_decode_tokens,total_tokens\n30,4,34\n");
    EXPECT_FALSE(lengths.timed);
    EXPECT_THAT(rows_of(lengths), ElementsAre(Row{0, 30, 4}));
    const Trace splitwise =
        trace_of("request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
                 "0,2,0,0.25,1,300,40\n1,2,0,0.75,1,5,6\n");
    EXPECT_EQ(splitwise.format, TraceFormat::kSplitwise);
    EXPECT_THAT(rows_of(splitwise), ElementsAre(Row{0, 300, 40}, Row{500, 5, 6}));
}

TEST(Traces, OfBurstGptHaveClassesAndLeaveOutWhatFailed) {
    const Trace t = trace_of("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                             "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,300,0,300,API log\n"
                             "118,GPT-4,417,276,693,\"API, log\"\n");
    EXPECT_EQ(t.format, TraceFormat::kBurstGpt);
    EXPECT_THAT(rows_of(t), ElementsAre(Row{0, 472, 18}, Row{113'000, 417, 276}));
    EXPECT_EQ(t.left_out, 1u);
    EXPECT_EQ(t.labels[t.rows[0].label], "Conversation log");
    EXPECT_EQ(t.labels[t.rows[1].label], "API, log") << "in quotes";
}

TEST(Traces, OfCsvNameTheLineOfAFault) {
    EXPECT_THAT(error_of("a,b,c\n"), HasSubstr("t:1: 'a,b,c', expected a header with the columns of one of azure:"));
    EXPECT_THAT(error_of(kAzure + "2023-11-16 18:15:46,1\n"), HasSubstr("t:2: 2 cells, expected 3"));
    EXPECT_THAT(error_of(kAzure + "2023-13-16 18:15:46,1,2\n"),
                HasSubstr("t:2: '2023-13-16 18:15:46', expected a time"));
    EXPECT_THAT(error_of(kAzure + "2023-11-16 18:15:46,-1,2\n"), HasSubstr("t:2: '-1', expected a number of tokens"));
    EXPECT_THAT(error_of(kAzure + "2023-11-16 18:15:46,1,2\n\n2023-11-16 18:15:45,1,2\n"),
                HasSubstr("t:4: a time before"));
    EXPECT_THAT(error_of(kAzure + "2023-11-16 18:15:46,1,\"2\n"), HasSubstr("t:2: a quote"));
    EXPECT_THAT(error_of(kAzure), HasSubstr("no rows"));
    EXPECT_THAT(error_of(""), HasSubstr("t:1: '', expected a header"));
    EXPECT_THAT(error_of("arrived_at,num_prefill_tokens,num_decode_tokens\nnan,1,2\n"),
                HasSubstr("t:2: 'nan', expected a time in seconds"));
    EXPECT_THAT(error_of("x\n", {.format = TraceFormat::kBurstGpt}),
                HasSubstr("expected a header with the columns of burstgpt: 'Timestamp,Request tokens"));
}

TEST(Traces, TakeTheRowsThatOptionsLeave) {
    const std::string csv = "arrived_at,num_prefill_tokens,num_decode_tokens\n10,1,1\n11,2,1\n12,3,1\n13,4,1\n";
    EXPECT_THAT(rows_of(trace_of(csv, {.skip = 2})), ElementsAre(Row{0, 3, 1}, Row{1000, 4, 1}));
    EXPECT_THAT(rows_of(trace_of(csv, {.from_s = 1, .until_s = 3})), ElementsAre(Row{0, 2, 1}, Row{1000, 3, 1}));
    EXPECT_THAT(rows_of(trace_of(csv, {.skip = 1, .from_s = 2})), ElementsAre(Row{0, 4, 1}));
    EXPECT_THAT(error_of(csv, {.from_s = 9}), HasSubstr("no rows in it after `skip`, `from_s` and `until_s`"));
    EXPECT_THAT(error_of(csv, {}, {.rows = 2}), HasSubstr("t:4: more than 2 rows"));
    EXPECT_THAT(error_of(csv, {}, {.line_bytes = 5}), HasSubstr("t:2: a line of 6 bytes, expected at most 5"));
}

constexpr const char* kMooncake =
    "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [3, 4]}\n"
    "{\"timestamp\": 27.5, \"input_length\": 512, \"output_length\": 6, \"hash_ids\": [3]}\n";

TEST(Traces, OfMooncakeHaveABlockForEach512Tokens) {
    const Trace t = trace_of(kMooncake);
    EXPECT_EQ(t.format, TraceFormat::kMooncake);
    EXPECT_THAT(rows_of(t), ElementsAre(Row{0, 700, 5}, Row{27, 512, 6}));
    EXPECT_EQ(t.rows[0].content, PromptContent::kBlocks);
    EXPECT_THAT(t.blocks, ElementsAre(3, 4, 3));
    EXPECT_EQ(t.rows[1].first, 2u);
    EXPECT_EQ(t.block_tokens, 512u);
    EXPECT_THAT(error_of(kMooncake, {.block_tokens = 64}),
                HasSubstr("t:1: 'hash_ids' is '[3,4]', expected a list of 11"));
    EXPECT_THAT(error_of("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [\"a\"]}"),
                HasSubstr("t:1: 'hash_ids' has '\"a\"', expected a whole number"));
}

TEST(Traces, KeepWhatTheyShareWhenLengthsAreScaled) {
    const Trace t = trace_of(kMooncake, {.length_scale = 1.0 / 64});
    EXPECT_EQ(t.block_tokens, 8u);
    EXPECT_THAT(rows_of(t), ElementsAre(Row{0, 8 + 3, 1}, Row{27, 8, 1})) << "188 tokens of the second block";
    EXPECT_THAT(rows_of(trace_of(kAzure + "2023-11-16 18:15:46,10,4\n", {.length_scale = 2.5})),
                ElementsAre(Row{0, 25, 10}));
}

TEST(Traces, OfTokenIdsHaveThemAndTheAnswers) {
    const Trace t = trace_of("{\"input_toks\": 2, \"output_toks\": 1, \"arrival_time_ns\": 46926808, "
                             "\"input_tok_ids\": [5, 9], \"output_tok_ids\": [7]}\n"
                             "{\"output_toks\": 3, \"arrival_time_ns\": 56926808, \"input_tok_ids\": [5]}\n");
    EXPECT_EQ(t.format, TraceFormat::kTokenIds);
    EXPECT_THAT(rows_of(t), ElementsAre(Row{0, 2, 1}, Row{10, 1, 3}));
    EXPECT_THAT(t.ids, ElementsAre(5, 9, 7, 5));
    EXPECT_TRUE(t.rows[0].has_answer);
    EXPECT_FALSE(t.rows[1].has_answer);
    EXPECT_THAT(error_of("{\"arrival_time_ns\": 1, \"input_tok_ids\": [1, -2], \"output_toks\": 3}"),
                HasSubstr("t:1: 'input_tok_ids' has '-2', expected a token id"));
}

TEST(Traces, OfShareGptAreSessionsOfTextsWithoutTimes) {
    const Trace t = trace_of(R"([
        {"id": "a", "conversations": [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "One?"},
            {"from": "gpt", "value": "1"}, {"from": "human", "value": "Two?"}, {"from": "gpt", "value": "2"}]},
        {"id": "b", "conversations": [{"from": "human", "value": "no answer"}]},
        {"messages": [{"role": "user", "content": "Three?"}, {"role": "assistant", "content": "3"}]}])");
    EXPECT_EQ(t.format, TraceFormat::kShareGpt);
    EXPECT_FALSE(t.timed);
    EXPECT_THAT(t.texts, ElementsAre("Be brief.\nOne?", "1", "Two?", "2", "Three?", "3"));
    ASSERT_EQ(t.rows.size(), 3u);
    EXPECT_FALSE(t.rows[0].follows);
    EXPECT_TRUE(t.rows[1].follows);
    EXPECT_EQ(t.rows[1].session, t.rows[0].session);
    EXPECT_FALSE(t.rows[2].follows);
    EXPECT_NE(t.rows[2].session, t.rows[0].session);
    EXPECT_EQ(t.left_out, 1u);
    const Trace lines = trace_of("{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, "
                                 "{\"from\": \"gpt\", \"value\": \"b\"}]}\n");
    EXPECT_EQ(lines.rows.size(), 1u);
}

TEST(Traces, OfShareGptNameTheConversationOfAFault) {
    EXPECT_THAT(error_of("[{\"conversations\": []}, {\"x\": 1}]"),
                HasSubstr("t: conversation 2: no list 'conversations'"));
    EXPECT_THAT(error_of("[{\"conversations\": [{\"from\": \"human\"}]}]"),
                HasSubstr("t: conversation 1: message 1 has no text 'value' or 'content'"));
    EXPECT_THAT(error_of("[\n\n{oops]"), HasSubstr("t:3: invalid JSON"));
    EXPECT_THAT(error_of("[3]"), HasSubstr("t: conversation 1: no list"));
    EXPECT_THAT(error_of("[{\"conversations\": []}]"), HasSubstr("no rows in it; 1 hold no request"));
    EXPECT_THAT(error_of("[" + std::string(200, '[') + std::string(200, ']') + "]"), HasSubstr("levels deep"));
}

TEST(Traces, OfThePatchbayFormatHaveAllThatARequestMayHave) {
    const Trace t = trace_of(
        "{\"at_s\": 1.5, \"prompt_tokens\": 40, \"prefix\": \"rules\", \"prefix_tokens\": 30, \"output_tokens\": 5, "
        "\"max_tokens\": 50, \"class\": \"chat\", \"tenant\": 3, \"priority\": -2, \"session\": \"s\"}\n"
        "\n{\"after_s\": 2, \"session\": \"s\", \"prompt_ids\": [1, 2], \"output_tokens\": 6}\n"
        "{\"at_s\": 2, \"prompt\": \"hello\", \"output_tokens\": 7}\n");
    EXPECT_EQ(t.format, TraceFormat::kPatchbay);
    ASSERT_EQ(t.rows.size(), 3u);
    const TraceRow &a = t.rows[0], &b = t.rows[1], &c = t.rows[2];
    EXPECT_EQ(a.content, PromptContent::kPrefix);
    EXPECT_EQ(a.count, 30u);
    EXPECT_EQ(a.max_tokens, 50u);
    EXPECT_EQ(t.labels[a.label], "chat");
    EXPECT_EQ(a.tenant, 3u);
    EXPECT_EQ(a.priority, -2);
    EXPECT_TRUE(b.follows);
    EXPECT_EQ(b.session, a.session);
    EXPECT_DOUBLE_EQ(b.think_s, 2);
    EXPECT_EQ(b.content, PromptContent::kIds);
    EXPECT_EQ(c.at_ns, 500 * kMs);
    EXPECT_EQ(c.content, PromptContent::kText);
    EXPECT_THAT(t.texts, ElementsAre("hello"));
    // A session whose beginning is left out is left out whole.
    EXPECT_EQ(trace_of("{\"at_s\": 0, \"session\": \"s\", \"prompt_tokens\": 1, \"output_tokens\": 1}\n"
                       "{\"after_s\": 2, \"session\": \"s\", \"prompt_tokens\": 1, \"output_tokens\": 6}\n"
                       "{\"at_s\": 2, \"prompt_tokens\": 1, \"output_tokens\": 7}\n",
                       {.skip = 1})
                  .rows.size(),
              1u);
}

TEST(Traces, OfThePatchbayFormatNameTheFaultyField) {
    const auto error = [&](const std::string& fields) { return error_of("\n{" + fields + "}"); };
    EXPECT_THAT(error("\"at_s\": 0, \"prompt_token\": 1"),
                HasSubstr("t:2: unknown field 'prompt_token' (did you mean 'prompt_tokens'?)"));
    EXPECT_THAT(error("\"prompt_tokens\": 1, \"output_tokens\": 1"),
                HasSubstr("t:2: has none of 'at_s' and 'after_s'"));
    EXPECT_THAT(error("\"at_s\": 0, \"output_tokens\": 1"), HasSubstr("t:2: has 0 of 'prompt'"));
    EXPECT_THAT(error("\"at_s\": -1, \"prompt_tokens\": 1, \"output_tokens\": 1"),
                HasSubstr("'at_s' is '-1', expected a time"));
    EXPECT_THAT(error("\"at_s\": 1, \"prompt_tokens\": 0, \"output_tokens\": 1"),
                HasSubstr("'prompt_tokens' is '0', expected a number of tokens from 1"));
    EXPECT_THAT(error("\"after_s\": 1, \"prompt_tokens\": 1, \"output_tokens\": 1"), HasSubstr("needs a 'session'"));
    EXPECT_THAT(error("\"at_s\": 1, \"prompt_tokens\": 1, \"output_tokens\": 5, \"max_tokens\": 4"),
                HasSubstr("'max_tokens' is 4, less than 'output_tokens' of 5"));
    EXPECT_THAT(error("\"at_s\": 1, \"prompt_tokens\": 1, \"output_tokens\": 5, \"prefix\": \"p\", "
                      "\"prefix_tokens\": 2"),
                HasSubstr("'prefix_tokens' is 2, more than 'prompt_tokens' of 1"));
    EXPECT_THAT(error("\"at_s\": "), HasSubstr("t:2: column "));
    EXPECT_THAT(error_of("[]"), HasSubstr("no rows"));
    EXPECT_THAT(error_of("{}\n"), HasSubstr("t:1: has none of"));
}

std::filesystem::path real(const char* name) {
    const char* data = std::getenv("PATCHBAY_TEST_DATA");
    return (data ? std::filesystem::path(data) : std::filesystem::path(kSourceDir) / ".." / "shared" / "data") /
           "traces" / name;
}

TEST(RealTraces, OfAzureIsRead) {
    const auto path = real("azure2023_conv.csv");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    const auto trace = read_trace(path);
    ASSERT_TRUE(trace) << trace.error();
    EXPECT_EQ(trace->rows.size(), 19366u);
    EXPECT_EQ(trace->rows[0].prompt_tokens, 374u);
    EXPECT_EQ(trace->rows[1].at_ns, 4'314'579'000u);
}

TEST(RealTraces, OfMooncakeSharesThePrefixesThatItsAuthorsReport) {
    const auto path = real("mooncake_conversation_trace.jsonl");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    const auto trace = read_trace(path);
    ASSERT_TRUE(trace) << trace.error();
    EXPECT_EQ(trace->rows.size(), 12031u);
    std::set<uint64_t> seen;
    uint64_t hit = 0;
    for (const TraceRow& r : trace->rows) { // a cache without end hits the longest prefix of blocks that it has seen
        bool prefix = true;
        for (uint32_t i = 0; i < r.count; ++i) {
            const bool known = seen.contains(trace->blocks[r.first + i]);
            prefix = prefix && known;
            hit += prefix;
            seen.insert(trace->blocks[r.first + i]);
        }
    }
    EXPECT_NEAR(static_cast<double>(hit) / static_cast<double>(trace->blocks.size()), 0.366, 0.001);
}

TEST(RealTraces, OfTokenIdsIsRead) {
    const auto path = real("sharegpt-llama-3.1-8b-300-sps10.jsonl");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    const auto trace = read_trace(path);
    ASSERT_TRUE(trace) << trace.error();
    EXPECT_EQ(trace->rows.size(), 300u);
    EXPECT_EQ(trace->rows[0].prompt_tokens, 2358u);
    EXPECT_EQ(trace->rows[0].output_tokens, 531u);
    EXPECT_EQ(trace->ids[0], 5971);
}

}  // namespace
}  // namespace patchbay::experiment::traces_test
