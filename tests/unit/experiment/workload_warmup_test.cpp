#include <gmock/gmock.h>

#include <set>

#include "workload_fixture.hpp"

namespace patchbay::experiment::workload_warmup_test {
namespace {

std::set<Ids> prompts_of(const WorkloadSource& source, uint32_t repeats) {
    std::set<Ids> out;
    for (uint32_t r = 0; r < repeats; ++r)
        for (const PlannedRequest& request : source.repeat(1, r).requests) out.insert(request.prompt);
    return out;
}

TEST(Workload, WarmUpRequestsAreOthersThanThoseOfAnyRepeat) {
    const WorkloadSpec spec = synthetic(4, FixedLength{30}, FixedLength{2});
    const auto source = WorkloadSource::open(spec, byte_tokenizer(), {100, 128});
    const auto warmup = source->warmup(1, 6);
    ASSERT_EQ(warmup.size(), 6u);
    for (const PlannedRequest& w : warmup)
        for (const PlannedRequest& r : source->repeat(1, 0).requests) EXPECT_NE(w.prompt, r.prompt);
    EXPECT_TRUE(source->warmup(1, 0).empty());
}

TEST(Workload, KnowsThePromptsOfAFileThatRepeatsTakeAgain) {
    const Folder f;
    std::string lines;
    for (int i = 0; i < 20; ++i) lines += "{\"prompt\": \"text " + std::to_string(10 + i) + "\"}\n";
    const auto shared = [&](uint32_t requests, Order order, uint32_t repeats) {
        WorkloadSpec spec;
        spec.requests = requests;
        spec.prompts = JsonlPrompts{.path = f.file("p.jsonl", lines), .order = order};
        spec.output_tokens = FixedLength{2};
        const auto source = WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, repeats, 1);
        const uint32_t count = source->shared_prompts(repeats);
        if (order == Order::kFile) { EXPECT_EQ(prompts_of(*source, repeats).size(), count); }
        if (count == 0 && repeats > 1) { EXPECT_EQ(prompts_of(*source, repeats).size(), size_t{requests} * repeats); }
        return count;
    };
    EXPECT_EQ(shared(5, Order::kShuffled, 4), 0u) << "as many as there are";
    EXPECT_EQ(shared(5, Order::kShuffled, 5), 20u);
    EXPECT_EQ(shared(30, Order::kShuffled, 1), 0u) << "one repeat has none to share with";
    EXPECT_EQ(shared(5, Order::kFile, 2), 5u);
    EXPECT_EQ(shared(30, Order::kFile, 2), 20u);
    const WorkloadSpec spec = synthetic(4, FixedLength{30}, FixedLength{2});
    const auto drawn = WorkloadSource::open(spec, byte_tokenizer(), {100, 128});
    EXPECT_EQ(drawn->shared_prompts(9), 0u);
}

TEST(Workload, WarmUpTakesPromptsOfAFileThatNoRepeatUses) {
    const Folder f;
    std::string lines;
    for (int i = 0; i < 20; ++i) lines += "{\"prompt\": \"text " + std::to_string(10 + i) + "\"}\n";
    WorkloadSpec spec;
    spec.requests = 4;
    spec.prompts = JsonlPrompts{f.file("p.jsonl", lines + lines)}; // each of them twice
    spec.output_tokens = FixedLength{2};
    const auto source = WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, 3, 1);
    const std::set<Ids> measured = prompts_of(*source, 3);
    for (const PlannedRequest& w : source->warmup(1, 9)) {
        EXPECT_FALSE(measured.contains(w.prompt));
        EXPECT_EQ(std::string(w.prompt.begin(), w.prompt.begin() + 5), "text ");
    }
    spec.requests.reset(); // all of them in each repeat
    const auto whole = WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, 3, 1);
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
    const auto source = WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, 2, 1);
    ASSERT_TRUE(source) << source.error();
    for (const PlannedRequest& w : source->warmup(1, 3))
        EXPECT_EQ(std::string(w.prompt.begin(), w.prompt.end()), "row 6");
    spec.requests = 7;
    const auto whole = WorkloadSource::open(spec, byte_tokenizer(), {100, 128}, 1, 1);
    const auto warmup = whole->warmup(1, 9);
    ASSERT_EQ(warmup.size(), 9u);
    for (const PlannedRequest& w : warmup) {
        EXPECT_FALSE(prompts_of(*whole, 1).contains(w.prompt));
        EXPECT_EQ(w.prompt.size(), 5u);
        EXPECT_EQ(w.sampling.max_tokens, 3u);
    }
}

TEST(Workload, WarmUpOfSessionsWaitsForNone) {
    WorkloadSpec spec = synthetic(10, FixedLength{4}, FixedLength{2});
    spec.sessions.turns = FixedLength{3};
    spec.arrivals = ClosedLoop{1, FixedTime{9}};
    const auto source = WorkloadSource::open(spec, byte_tokenizer(), {100, 128});
    for (const PlannedRequest& r : source->warmup(1, 5)) {
        EXPECT_FALSE(r.follows);
        EXPECT_EQ(r.arrival_ns, 0u);
    }
}

}  // namespace
}  // namespace patchbay::experiment::workload_warmup_test
