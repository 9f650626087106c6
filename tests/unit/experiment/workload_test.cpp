#include "experiment/workload.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

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

Result<std::vector<std::string>> read_jsonl_prompts(const std::filesystem::path& path, const std::string& field,
                                                    const InputLimits& limits = {}) {
    std::vector<InputFile> files;
    PB_TRY(const std::string text, read_input(path, files, limits));
    return jsonl_prompts(text, path, field, limits);
}

TEST(Workload, KnowsTheFilesThatItWasReadFromByTheirBytes) {
    const Folder f;
    WorkloadSpec spec;
    spec.output_tokens = FixedLength{2};
    spec.prompts = JsonlPrompts{f.file("p.jsonl", "{\"prompt\": \"abc\"}\n")};
    const auto digest = [&] {
        const auto source = WorkloadSource::open(spec, kTokenizer(), {100, 128});
        EXPECT_EQ(source->files().size(), 1u);
        EXPECT_EQ(source->files()[0].path, (f.path / "p.jsonl").string());
        return source->files()[0].sha256;
    };
    const std::string before = digest();
    EXPECT_EQ(before.size(), 64u);
    EXPECT_EQ(digest(), before);
    f.file("p.jsonl", "{\"prompt\": \"abd\"}\n");
    EXPECT_NE(digest(), before);
    spec.prompts = TextPrompts{f.file("t.txt", "some text"), FixedLength{5}};
    spec.requests = 1;
    EXPECT_EQ(WorkloadSource::open(spec, kTokenizer(), {100, 128})->files().size(), 1u);
    spec.prompts = SyntheticPrompts{};
    EXPECT_TRUE(WorkloadSource::open(spec, kTokenizer(), {100, 128})->files().empty());
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
        TracePrompts{f.file("t.csv", std::string(kHeader) + "2023-11-16 18:15:46,12,3\n2023-11-16 18:15:48,5,0\n"), {}};
    spec.arrivals = TraceArrivals{0.25};
    const Workload w = workload_of(spec);
    ASSERT_EQ(w.requests.size(), 2u);
    EXPECT_EQ(w.requests[0].prompt.size(), 12u);
    EXPECT_EQ(w.requests[0].sampling.max_tokens, 3u);
    EXPECT_EQ(w.requests[1].sampling.max_tokens, 1u); // an engine makes at least one
    EXPECT_EQ(w.requests[1].arrival_ns, 500'000'000u);
    spec.requests = 3;
    EXPECT_THAT(WorkloadSource::open(spec, kTokenizer(), {100, 128}).error(),
                HasSubstr("has 2 rows, the workload needs 3 requests"));
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

using Ids = std::vector<text::TokenId>;

std::set<Ids> prompts_of(const WorkloadSource& source, uint32_t repeats) {
    std::set<Ids> out;
    for (uint32_t r = 0; r < repeats; ++r)
        for (const PlannedRequest& request : source.repeat(1, r).requests) out.insert(request.prompt);
    return out;
}

TEST(Workload, WarmUpTakesPromptsOfAFileThatNoRepeatUses) {
    const Folder f;
    std::string lines;
    for (int i = 0; i < 20; ++i) lines += "{\"prompt\": \"text " + std::to_string(10 + i) + "\"}\n";
    WorkloadSpec spec;
    spec.requests = 4;
    spec.prompts = JsonlPrompts{f.file("p.jsonl", lines + lines)}; // each of them twice
    spec.output_tokens = FixedLength{2};
    const auto source = WorkloadSource::open(spec, kTokenizer(), {100, 128}, 3, 1);
    const std::set<Ids> measured = prompts_of(*source, 3);
    for (const PlannedRequest& w : source->warmup(1, 9)) {
        EXPECT_FALSE(measured.contains(w.prompt));
        EXPECT_EQ(std::string(w.prompt.begin(), w.prompt.begin() + 5), "text ");
    }
    spec.requests.reset(); // all of them in each repeat
    const auto whole = WorkloadSource::open(spec, kTokenizer(), {100, 128}, 3, 1);
    const std::set<Ids> all = prompts_of(*whole, 1);
    const auto warmup = whole->warmup(1, 50);
    ASSERT_EQ(warmup.size(), 50u);
    for (const PlannedRequest& w : warmup) {
        EXPECT_FALSE(all.contains(w.prompt));
        EXPECT_EQ(w.prompt.size(), 7u);
    }
}

TEST(Workload, WarmUpTakesRowsOfATraceThatNoRepeatUses) {
    const Folder f;
    std::string rows;
    for (int i = 0; i < 7; ++i)
        rows += "{\"at_s\": " + std::to_string(i) + ", \"prompt\": \"row " + std::to_string(i) +
                "\", \"output_tokens\": 3}\n";
    WorkloadSpec spec;
    spec.prompts = TracePrompts{f.file("t.jsonl", rows), {}};
    spec.arrivals = TraceArrivals{};
    spec.requests = 3;
    const auto source = WorkloadSource::open(spec, kTokenizer(), {100, 128}, 2, 1);
    ASSERT_TRUE(source) << source.error();
    for (const PlannedRequest& w : source->warmup(1, 3))
        EXPECT_EQ(std::string(w.prompt.begin(), w.prompt.end()), "row 6");
    spec.requests = 7;
    const auto whole = WorkloadSource::open(spec, kTokenizer(), {100, 128}, 1, 1);
    const auto warmup = whole->warmup(1, 9);
    ASSERT_EQ(warmup.size(), 9u);
    for (const PlannedRequest& w : warmup) {
        EXPECT_FALSE(prompts_of(*whole, 1).contains(w.prompt));
        EXPECT_EQ(w.prompt.size(), 5u);
        EXPECT_EQ(w.sampling.max_tokens, 3u);
    }
}

Ids head(const Ids& ids, size_t n) { return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)}; }

WorkloadSpec of_trace(const Folder& f, const std::string& text, TraceOptions options = {}) {
    WorkloadSpec spec;
    spec.prompts = TracePrompts{f.file("trace", text), options};
    spec.arrivals = TraceArrivals{};
    return spec;
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
    const auto source = WorkloadSource::open(beyond, kTokenizer(), {1000, 128});
    ASSERT_TRUE(source) << source.error();
    const Workload w = source->repeat(1, 0);
    const Ids& other = w.requests[1].prompt;
    EXPECT_EQ(w.requests[0].prompt[0], other[0]);
    EXPECT_EQ(other[1], other[2]);
    EXPECT_NE(other[2], other[3]);
    EXPECT_THAT(other, ::testing::Each(::testing::AllOf(::testing::Gt(0), ::testing::Lt(128))));
    EXPECT_THAT(source->notices(), ElementsAre(HasSubstr("beyond the vocabulary")));
}

constexpr const char* kTalks =
    R"([{"conversations": [{"from": "human", "value": "ab"}, {"from": "gpt", "value": "xyz"},
                           {"from": "human", "value": "cd"}, {"from": "gpt", "value": "uv"}]},
        {"conversations": [{"from": "human", "value": "efg"}, {"from": "gpt", "value": "w"}]}])";

TEST(Workload, MakesConversationsOfTurnsThatFollowOneAnother) {
    const Folder f;
    WorkloadSpec spec = of_trace(f, kTalks);
    EXPECT_THAT(WorkloadSource::open(spec, kTokenizer(), {100, 128}).error(), HasSubstr("has no times"));
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

TEST(Workload, DeclaresMaxTokensApartFromWhereOutputsEnd) {
    WorkloadSpec spec = synthetic(3, FixedLength{4}, FixedLength{7});
    spec.max_tokens = FixedLength{50};
    const Workload w = workload_of(spec);
    EXPECT_EQ(w.requests[0].sampling.max_tokens, 50u);
    EXPECT_EQ(w.requests[0].ends_after, 7u);
    EXPECT_EQ(w.requests[0].output_tokens, 0u) << "its sender does not know";
    EXPECT_EQ(workload_of(spec, 1, 0, {20, 128}).requests[0].sampling.max_tokens, 16u) << "what the model holds";
    spec.ignore_eos = false;
    EXPECT_EQ(workload_of(spec).requests[0].sampling.max_tokens, 50u);
    EXPECT_EQ(workload_of(spec).requests[0].ends_after, 7u) << "at the latest";
    spec.ignore_eos = true;
    spec.max_tokens = FixedLength{2};
    EXPECT_EQ(workload_of(spec).requests[0].sampling.max_tokens, 7u);
    spec.max_tokens.reset();
    EXPECT_EQ(workload_of(spec).requests[0].ends_after, 0u);
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

TEST(Workload, WarmUpOfSessionsWaitsForNone) {
    WorkloadSpec spec = synthetic(10, FixedLength{4}, FixedLength{2});
    spec.sessions.turns = FixedLength{3};
    spec.arrivals = ClosedLoop{1, FixedTime{9}};
    const auto source = WorkloadSource::open(spec, kTokenizer(), {100, 128});
    for (const PlannedRequest& r : source->warmup(1, 5)) {
        EXPECT_FALSE(r.follows);
        EXPECT_EQ(r.arrival_ns, 0u);
    }
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
