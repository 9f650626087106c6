#include "experiment/workload.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "experiment/arrivals.hpp"
#include "experiment/input_files.hpp"
#include "paths.hpp"

namespace patchbay::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Folder { // removed at the end
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "patchbay-workload-XXXXXX").string();
        path = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path file(const std::string& name, const std::string& text) const {
        std::ofstream(path / name, std::ios::binary) << text;
        return path / name;
    }
};

class WordTokenizer final : public text::Tokenizer { // one id a byte; id 0 is special
  public:
    std::vector<text::TokenId> encode(std::string_view s) const override { return {s.begin(), s.end()}; }
    std::string_view token_bytes(text::TokenId) const override { return ""; }
    bool is_special(text::TokenId t) const override { return t == 0; }
    std::string decode(const std::vector<text::TokenId>& ids) const override { return {ids.begin(), ids.end()}; }
    uint32_t vocab_size() const override { return 128; }
    std::optional<text::TokenId> eos() const override { return 0; }
    std::optional<text::TokenId> id_of(std::string_view) const override { return std::nullopt; }
};

const auto kTokenizer = [] { return std::make_shared<const WordTokenizer>(); };

Workload workload_of(const WorkloadSpec& spec, uint64_t seed = 1, uint32_t repeat = 0,
                     WorkloadLimits limits = {1000, 128}) {
    auto source = WorkloadSource::open(spec, kTokenizer(), limits);
    EXPECT_TRUE(source) << source.error();
    return source->repeat(seed, repeat);
}

TEST(JsonlPrompts, TakesTheFieldAtADottedPath) {
    const Folder f;
    const auto path = f.file("p.jsonl", "{\"turns\": [\"one\", \"x\"]}\n\n{\"turns\": [\"two\"]}");
    EXPECT_THAT(*read_jsonl_prompts(path, "turns.0"), ElementsAre("one", "two"));
}

TEST(JsonlPrompts, FaultsNameTheFileTheLineAndWhatIsThere) {
    const Folder f;
    const auto error = [&](const std::string& text) {
        return read_jsonl_prompts(f.file("p.jsonl", text), "prompt").error();
    };
    EXPECT_THAT(error("{\"prompt\": \"a\"}\n{\"prompt\": 3}\n"),
                HasSubstr("p.jsonl:2: field 'prompt' is a number, expected a string"));
    EXPECT_THAT(error("{\"promt\": \"a\"}\n"), HasSubstr("p.jsonl:1: no field 'prompt' (there are 'promt')"));
    EXPECT_THAT(error("{\"prompt\": \"a\"}\n\n{oops\n"), HasSubstr("p.jsonl:3:2: invalid JSON"));
    EXPECT_THAT(error("{\"prompt\": \"\"}\n"), HasSubstr("p.jsonl:1: field 'prompt' is empty"));
    EXPECT_THAT(error("\n"), HasSubstr("no prompts in it"));
    EXPECT_THAT(read_jsonl_prompts(f.path / "none", "prompt").error(), HasSubstr("none"));
}

TEST(JsonlPrompts, AreLimitedInLengthAndNumber) {
    const Folder f;
    const auto path = f.file("p.jsonl", "{\"prompt\": \"abc\"}\n{\"prompt\": \"abc\"}\n");
    EXPECT_THAT(read_jsonl_prompts(path, "prompt", {.line_bytes = 10}).error(),
                HasSubstr("p.jsonl:1: a line of 17 bytes, expected at most 10"));
    EXPECT_THAT(read_jsonl_prompts(path, "prompt", {.rows = 1}).error(), HasSubstr("more than 1 prompts"));
    EXPECT_THAT(read_jsonl_prompts(path, "prompt", {.file_bytes = 5}).error(), HasSubstr("more than the 5"));
}

constexpr const char* kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

TEST(AzureTrace, TimesCountFromTheFirstRowThatIsTaken) {
    const Folder f;
    const auto path =
        f.file("t.csv",
               std::string(kHeader) +
                   "2023-11-16 23:59:58.5,10,1\r\n2023-11-16 23:59:59.0000001,20,2\r\n2023-11-17 00:00:01.0,30,3\r\n");
    const auto rows = *read_azure_trace(path, 1, 10);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].prompt_tokens, 20u);
    EXPECT_EQ(rows[1].at_ns, 1'999'999'900u);
    EXPECT_EQ(rows[1].output_tokens, 3u);
    EXPECT_EQ(read_azure_trace(path, 0, 1)->size(), 1u);
}

TEST(AzureTrace, FaultsNameTheFileAndTheLine) {
    const Folder f;
    const auto error = [&](const std::string& text) { return read_azure_trace(f.file("t.csv", text), 0, 100).error(); };
    EXPECT_THAT(error("a,b,c\n"), HasSubstr("t.csv:1: 'a,b,c', expected the header"));
    EXPECT_THAT(error(std::string(kHeader) + "2023-11-16 18:15:46,1\n"), HasSubstr("t.csv:2: 2 cells, expected 3"));
    EXPECT_THAT(error(std::string(kHeader) + "2023-13-16 18:15:46,1,2\n"),
                HasSubstr("t.csv:2: '2023-13-16 18:15:46', expected a time"));
    EXPECT_THAT(error(std::string(kHeader) + "2023-11-16 18:15:46,-1,2\n"),
                HasSubstr("t.csv:2: '-1', expected a number of tokens"));
    EXPECT_THAT(error(std::string(kHeader) + "2023-11-16 18:15:46,1,2\n2023-11-16 18:15:45,1,2\n"),
                HasSubstr("t.csv:3: a time before"));
    EXPECT_THAT(error(kHeader), HasSubstr("no rows"));
}

TEST(AzureTrace, ReadsTheRealOne) {
    const char* data = std::getenv("PATCHBAY_TEST_DATA");
    const std::filesystem::path path =
        (data ? std::filesystem::path(data) : std::filesystem::path(kSourceDir) / ".." / "shared" / "data") /
        "traces" / "azure2023_conv.csv";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    const auto rows = read_azure_trace(path, 0, ~0u);
    ASSERT_TRUE(rows) << rows.error();
    EXPECT_EQ(rows->size(), 19366u);
    EXPECT_EQ((*rows)[0].prompt_tokens, 374u);
    EXPECT_EQ((*rows)[1].at_ns, 4'314'579'000u);
}

TEST(Arrivals, FollowTheirProcess) {
    const Draws d(1, 0);
    EXPECT_THAT(arrival_times(AllAtOnce{}, 3, d, {}), ElementsAre(0, 0, 0));
    EXPECT_THAT(arrival_times(DeterministicArrivals{4}, 3, d, {}), ElementsAre(0, 250'000'000, 500'000'000));
    EXPECT_THAT(arrival_times(BurstArrivals{2, 1.5}, 5, d, {}),
                ElementsAre(0, 0, 1'500'000'000, 1'500'000'000, 3'000'000'000));
    const std::vector<TraceRow> trace{{0, 1, 1}, {2'000'000'000, 1, 1}};
    EXPECT_THAT(arrival_times(TraceArrivals{0.5}, 2, d, trace), ElementsAre(0, 1'000'000'000));
}

TEST(Arrivals, OfPoissonAndGammaHaveTheirRateAndBurstiness) {
    const Draws d(1, 0);
    const auto check = [&](const Arrivals& process, double cv) {
        constexpr uint32_t kCount = 20000;
        const auto times = arrival_times(process, kCount, d, {});
        EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
        const double mean = static_cast<double>(times.back()) / kCount * 1e-9;
        double squares = 0;
        for (uint32_t i = 1; i < kCount; ++i)
            squares += std::pow(static_cast<double>(times[i] - times[i - 1]) * 1e-9 - mean, 2);
        EXPECT_NEAR(mean, 0.1, 0.006);
        EXPECT_NEAR(std::sqrt(squares / kCount) / mean, cv, 0.1 * cv);
    };
    check(PoissonArrivals{10}, 1);
    check(GammaArrivals{10, 0.3}, 0.3);
    check(GammaArrivals{10, 3}, 3);
}

WorkloadSpec synthetic(uint32_t requests, Length prompt, Length output) {
    WorkloadSpec spec;
    spec.requests = requests;
    spec.prompts = SyntheticPrompts{std::move(prompt)};
    spec.output_tokens = std::move(output);
    return spec;
}

bool operator_equal(const Workload& a, const Workload& b) {
    if (a.requests.size() != b.requests.size()) return false;
    for (size_t i = 0; i < a.requests.size(); ++i)
        if (a.requests[i].prompt != b.requests[i].prompt || a.requests[i].arrival_ns != b.requests[i].arrival_ns ||
            a.requests[i].sampling.max_tokens != b.requests[i].sampling.max_tokens ||
            a.requests[i].sampling.seed != b.requests[i].sampling.seed)
            return false;
    return true;
}

TEST(Workload, IsTheSameForTheSameSeedAndRepeatAndAnotherForOthers) {
    WorkloadSpec spec = synthetic(20, UniformLength{5, 50}, UniformLength{1, 9});
    spec.arrivals = PoissonArrivals{3};
    EXPECT_TRUE(operator_equal(workload_of(spec, 1, 0), workload_of(spec, 1, 0)));
    EXPECT_FALSE(operator_equal(workload_of(spec, 1, 0), workload_of(spec, 1, 1)));
    EXPECT_FALSE(operator_equal(workload_of(spec, 1, 0), workload_of(spec, 2, 0)));
}

TEST(Workload, ForcesOutputLengthsAndGivesEachRequestASeed) {
    const Workload w = workload_of(synthetic(3, FixedLength{4}, FixedLength{7}));
    ASSERT_EQ(w.requests.size(), 3u);
    for (const PlannedRequest& r : w.requests) {
        EXPECT_EQ(r.prompt.size(), 4u);
        EXPECT_EQ(r.sampling.max_tokens, 7u);
        EXPECT_TRUE(r.sampling.ignore_eos);
        EXPECT_THAT(r.prompt, ::testing::Each(::testing::AllOf(::testing::Gt(0), ::testing::Lt(128)))); // 0 is special
    }
    EXPECT_NE(w.requests[0].sampling.seed, w.requests[1].sampling.seed);
}

TEST(Workload, DrawsTenantsPrioritiesAndDeadlinesAndLeavesTheRestAsItWas) {
    WorkloadSpec spec = synthetic(2000, FixedLength{4}, FixedLength{7});
    const Workload plain = workload_of(spec);
    spec.tenants = {3, 0, 1};
    spec.priorities = {1, 1};
    spec.deadline = {2, 4};
    const Workload drawn = workload_of(spec);
    std::map<uint32_t, uint32_t> tenants;
    std::map<int32_t, uint32_t> priorities;
    double latest_s = 0, earliest_s = 9;
    for (size_t i = 0; i < 2000; ++i) {
        const PlannedRequest& r = drawn.requests[i];
        tenants[r.tenant] += 1;
        priorities[r.priority] += 1;
        const double after_s = 1e-9 * static_cast<double>(r.deadline_ns - r.arrival_ns);
        latest_s = std::max(latest_s, after_s);
        earliest_s = std::min(earliest_s, after_s);
        EXPECT_EQ(r.output_tokens, 7u);
        EXPECT_EQ(r.prompt, plain.requests[i].prompt);
        EXPECT_EQ(plain.requests[i].tenant + plain.requests[i].deadline_ns, 0u);
    }
    EXPECT_EQ(tenants.size(), 2u);
    EXPECT_NEAR(tenants[1], 1500, 80);
    EXPECT_NEAR(tenants[3], 500, 80);
    EXPECT_NEAR(priorities[0], 1000, 90);
    EXPECT_EQ(priorities.size(), 2u);
    EXPECT_GE(earliest_s, 2);
    EXPECT_LE(latest_s, 4);
    EXPECT_LT(earliest_s, 2.05);
    EXPECT_GT(latest_s, 3.95);
    spec.ignore_eos = false; // how long an output will be is then not known
    EXPECT_EQ(workload_of(spec).requests[0].output_tokens, 0u);
}

TEST(Workload, CutsWhatDoesNotFitAndCountsIt) {
    const Workload w = workload_of(synthetic(2, FixedLength{95}, FixedLength{10}), 1, 0, {100, 128});
    EXPECT_EQ(w.requests[0].prompt.size(), 90u);
    EXPECT_EQ(w.requests[0].sampling.max_tokens, 10u);
    EXPECT_EQ(w.clipped.prompts, 2u);
    EXPECT_EQ(w.clipped.prompt_tokens, 10u);
    EXPECT_EQ(w.clipped.outputs, 0u);
    const Workload both = workload_of(synthetic(1, FixedLength{400}, FixedLength{400}), 1, 0, {100, 128});
    EXPECT_EQ(both.requests[0].prompt.size(), 50u);
    EXPECT_EQ(both.requests[0].sampling.max_tokens, 50u);
}

TEST(Workload, GoesThroughAllPromptsOfAFileBeforeAnyComesAgain) {
    const Folder f;
    WorkloadSpec spec;
    spec.prompts = JsonlPrompts{f.file("p.jsonl", "{\"prompt\":\"aa\"}\n{\"prompt\":\"b\"}\n{\"prompt\":\"ccc\"}\n"),
                                "prompt", Order::kShuffled};
    spec.output_tokens = FixedLength{1};
    spec.requests = 6;
    const Workload w = workload_of(spec);
    std::multiset<size_t> first, second;
    for (size_t i = 0; i < 3; ++i) first.insert(w.requests[i].prompt.size());
    for (size_t i = 3; i < 6; ++i) second.insert(w.requests[i].prompt.size());
    EXPECT_THAT(first, ElementsAre(1, 2, 3));
    EXPECT_EQ(first, second);
    std::get<JsonlPrompts>(spec.prompts).order = Order::kFile;
    spec.requests.reset();
    EXPECT_EQ(workload_of(spec).requests[2].prompt, (std::vector<text::TokenId>{'c', 'c', 'c'}));
}

TEST(Workload, CutsPromptsFromATextAndGoesRoundItsEnd) {
    const Folder f;
    WorkloadSpec spec;
    spec.prompts = TextPrompts{f.file("t.txt", "abc"), FixedLength{5}};
    spec.output_tokens = FixedLength{1};
    spec.requests = 10;
    for (const PlannedRequest& r : workload_of(spec).requests) {
        ASSERT_EQ(r.prompt.size(), 5u);
        for (size_t i = 1; i < 5; ++i) EXPECT_EQ(r.prompt[i], r.prompt[i - 1] == 'c' ? 'a' : r.prompt[i - 1] + 1);
    }
}

TEST(Workload, TakesLengthsAndTimesFromATrace) {
    const Folder f;
    WorkloadSpec spec;
    spec.prompts =
        TracePrompts{f.file("t.csv", std::string(kHeader) + "2023-11-16 18:15:46,12,3\n2023-11-16 18:15:48,5,0\n"), 0};
    spec.arrivals = TraceArrivals{0.25};
    const Workload w = workload_of(spec);
    ASSERT_EQ(w.requests.size(), 2u);
    EXPECT_EQ(w.requests[0].prompt.size(), 12u);
    EXPECT_EQ(w.requests[0].sampling.max_tokens, 3u);
    EXPECT_EQ(w.requests[1].sampling.max_tokens, 1u); // an engine makes at least one
    EXPECT_EQ(w.requests[1].arrival_ns, 500'000'000u);
    spec.requests = 3;
    EXPECT_THAT(WorkloadSource::open(spec, kTokenizer(), {100, 128}).error(),
                HasSubstr("has 2 rows, the workload asks for 3 requests"));
}

TEST(Workload, GivesEachRepeatAWindowOfTheTraceThatBeginsAtItsOwnStart) {
    const Folder f;
    WorkloadSpec spec;
    std::string csv(kHeader);
    for (int i = 0; i < 6; ++i) csv += "2023-11-16 18:15:4" + std::to_string(i) + "," + std::to_string(10 + i) + ",3\n";
    spec.prompts = TracePrompts{f.file("t.csv", csv), 0};
    spec.arrivals = TraceArrivals{};
    const auto lengths = [&](const WorkloadSource& source, uint32_t repeat) {
        std::vector<size_t> out;
        for (const PlannedRequest& r : source.repeat(1, repeat).requests) out.push_back(r.prompt.size());
        return out;
    };
    const auto source = WorkloadSource::open(spec, kTokenizer(), {100, 128}, 3, 1);
    ASSERT_TRUE(source) << source.error();
    EXPECT_THAT(lengths(*source, 0), ElementsAre(10, 11));
    EXPECT_THAT(lengths(*source, 2), ElementsAre(14, 15));
    EXPECT_EQ(source->repeat(1, 2).requests[0].arrival_ns, 0u);
    EXPECT_EQ(source->repeat(1, 2).requests[1].arrival_ns, 1'000'000'000u);
    EXPECT_FALSE(source->independent());
    spec.windows = SameWindow{};
    EXPECT_EQ(lengths(*WorkloadSource::open(spec, kTokenizer(), {100, 128}, 3, 1), 2).size(), 6u);
    spec.windows = DrawnWindows{0.5};
    spec.requests = 3;
    const auto drawn = WorkloadSource::open(spec, kTokenizer(), {100, 128}, 2, 1);
    ASSERT_TRUE(drawn) << drawn.error();
    const std::vector<size_t> first = lengths(*drawn, 0), second = lengths(*drawn, 1);
    const bool shared = std::ranges::find_first_of(first, second) != first.end();
    EXPECT_EQ(drawn->independent().value_or(2), shared ? 1u : 2u);
}

TEST(Workload, WarmUpRequestsAreOthersThanThoseOfAnyRepeat) {
    const auto source = WorkloadSource::open(synthetic(4, FixedLength{30}, FixedLength{2}), kTokenizer(), {100, 128});
    const auto warmup = source->warmup(1, 6);
    ASSERT_EQ(warmup.size(), 6u);
    for (const PlannedRequest& w : warmup)
        for (const PlannedRequest& r : source->repeat(1, 0).requests) EXPECT_NE(w.prompt, r.prompt);
    EXPECT_TRUE(source->warmup(1, 0).empty());
}

TEST(Workload, OfTextWithoutATokenizerIsRefused) {
    const Folder f;
    WorkloadSpec spec;
    spec.prompts = TextPrompts{f.file("t.txt", "abc"), FixedLength{5}};
    spec.requests = 1;
    spec.output_tokens = FixedLength{1};
    EXPECT_THAT(WorkloadSource::open(spec, nullptr, {100, 128}).error(), HasSubstr("needs a tokenizer"));
}

}  // namespace
}  // namespace patchbay::experiment
