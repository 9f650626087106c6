#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "workload_fixture.hpp"

namespace patchbay::experiment::workload_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool operator_equal(const Workload& a, const Workload& b) {
    if (a.requests.size() != b.requests.size()) return false;
    for (size_t i = 0; i < a.requests.size(); ++i)
        if (a.requests[i].prompt != b.requests[i].prompt || a.requests[i].arrival_ns != b.requests[i].arrival_ns ||
            a.requests[i].sampling.max_tokens != b.requests[i].sampling.max_tokens ||
            a.requests[i].sampling.seed != b.requests[i].sampling.seed)
            return false;
    return true;
}

TEST(Workload, KnowsTheFilesThatItWasReadFromByTheirBytes) {
    const Folder f;
    WorkloadSpec spec;
    spec.output_tokens = FixedLength{2};
    spec.prompts = JsonlPrompts{f.file("p.jsonl", "{\"prompt\": \"abc\"}\n")};
    const auto digest = [&] {
        const auto source = WorkloadSource::open(spec, byte_tokenizer(), {100, 128});
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
    EXPECT_EQ(WorkloadSource::open(spec, byte_tokenizer(), {100, 128})->files().size(), 1u);
    spec.prompts = SyntheticPrompts{};
    EXPECT_TRUE(WorkloadSource::open(spec, byte_tokenizer(), {100, 128})->files().empty());
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

TEST(Workload, OfTextWithoutATokenizerIsRefused) {
    const Folder f;
    WorkloadSpec spec;
    spec.prompts = TextPrompts{f.file("t.txt", "abc"), FixedLength{5}};
    spec.requests = 1;
    spec.output_tokens = FixedLength{1};
    EXPECT_THAT(WorkloadSource::open(spec, nullptr, {100, 128}).error(), HasSubstr("needs a tokenizer"));
}

}  // namespace
}  // namespace patchbay::experiment::workload_test
