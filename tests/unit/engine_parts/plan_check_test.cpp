// Plans against the contract: one that keeps it is read as it is, of one that breaches it the reason is given.
#include "engine/scheduling/plan_check.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

#include "config/engine_config.hpp"
#include "engine/scheduling/step_plan.hpp"
#include "kv/cached_prefix.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::plan_check_test {
namespace {

using Items = std::vector<std::pair<uint64_t, uint32_t>>; // ids, tokens

struct Bench {
    Sequence& run(RequestId id) {
        Sequence& s = sequences.add(sequence(id, 8));
        sequences.run(s);
        return s;
    }
    Sequence& wait(RequestId id) {
        Sequence& s = sequences.add(sequence(id, 8));
        sequences.leave(s);
        sequences.wait_last(s, record_of(s, {}, 16));
        return s;
    }
    std::string breach(const Items& items, const std::vector<uint64_t>& preempted = {}) { // "": it keeps the contract
        std::vector<pb_plan_item> wrote;
        std::vector<pb_preempt_item> preempts;
        for (const auto& [id, tokens] : items) wrote.push_back({id, tokens, 0});
        for (const uint64_t id : preempted) preempts.push_back({id, PB_PREEMPT_SWAP, 0});
        const Result<> read = part.read(wrote, preempts, plan);
        return read ? "" : read.error();
    }

    config::EngineSettings settings{.max_num_batched_tokens = 64, .max_num_seqs = 3};
    Sequences sequences;
    PlanCheck part{settings, sequences};
    StepPlan plan;
};

TEST(PlanCheck, ReadsAPlanInItsOrder) {
    Bench b;
    Sequence &runs = b.run(1), &other = b.run(2), &waits = b.wait(3);
    ASSERT_EQ(b.breach({{3, 6}, {1, 2}}, {2}), "");
    ASSERT_EQ(b.plan.items.size(), 2u);
    EXPECT_EQ(b.plan.items[0].sequence, &waits);
    EXPECT_EQ(b.plan.items[0].tokens, 6u);
    EXPECT_EQ(b.plan.items[1].sequence, &runs);
    EXPECT_EQ(b.plan.items[1].tokens, 2u);
    ASSERT_EQ(b.plan.preemptions.size(), 1u);
    EXPECT_EQ(b.plan.preemptions[0].sequence, &other);
    EXPECT_EQ(b.plan.preemptions[0].id, 2u);
    EXPECT_EQ(b.plan.preemptions[0].how, PB_PREEMPT_SWAP);
    ASSERT_EQ(b.breach({{1, 1}}), "");
    EXPECT_EQ(b.plan.items.size(), 1u) << "of the plan before nothing is left";
    EXPECT_TRUE(b.plan.preemptions.empty());
}

TEST(PlanCheck, SaysWhichRuleIsBreached) {
    Bench b;
    b.run(1);
    b.run(2);
    b.wait(3);
    b.wait(4);
    b.sequences.leave(b.sequences.add(sequence(98, 4))); // held
    b.sequences.add(sequence(99, 4));                    // still to arrive
    EXPECT_EQ(b.breach({{777, 1}}), "plans 777, which it was not shown");
    EXPECT_EQ(b.breach({{98, 1}}), "plans 98, which it was not shown");
    EXPECT_EQ(b.breach({{99, 1}}), "plans 99, which it was not shown");
    EXPECT_EQ(b.breach({{1, 0}}), "plans no tokens for 1");
    EXPECT_EQ(b.breach({{1, 1}, {2, 1}, {1, 1}}), "names 1 twice");
    EXPECT_EQ(b.breach({{1, 1}}, {1}), "names 1 twice");
    EXPECT_EQ(b.breach({}, {2, 2}), "names 2 twice");
    EXPECT_EQ(b.breach({}, {3}), "preempts 3, which is not running");
    EXPECT_EQ(b.breach({}, {777}), "preempts 777, which is not running");
    EXPECT_EQ(b.breach({{1, 4}, {3, 61}}), "plans 65 tokens, more than max_num_batched_tokens of 64");
    EXPECT_EQ(b.breach({{3, 1}, {4, 1}}), "has 4 sequences running, more than max_num_seqs of 3");
    EXPECT_EQ(b.breach({{1, 4}, {3, 60}}), "") << "just what there is";
    EXPECT_EQ(b.breach({{3, 1}, {4, 1}}, {1}), "") << "a preemption makes a seat";
}

TEST(PlanCheck, TokensDoNotAddUpToFew) {
    Bench b;
    b.run(1);
    b.run(2);
    EXPECT_EQ(b.breach({{1, UINT32_MAX}, {2, 2}}),
              "plans 4294967297 tokens, more than max_num_batched_tokens of 64");
}

// Plans of few ids, so that breaches are common, against the contract word for word.
TEST(PlanCheck, AgreesWithTheContractOverRandomPlans) {
    std::mt19937 draw(11);
    Bench b;
    b.settings.max_num_seqs = 4;
    b.settings.max_num_batched_tokens = 20;
    for (RequestId id = 1; id <= 3; ++id) b.run(id);
    for (RequestId id = 4; id <= 6; ++id) b.wait(id);
    b.sequences.add(sequence(7, 4)); // still to arrive
    size_t good = 0, bad = 0;
    for (int trial = 0; trial < 5000; ++trial) {
        Items items;
        std::vector<uint64_t> preempted;
        for (uint32_t i = draw() % 4; i > 0; --i)
            items.emplace_back(1 + draw() % (draw() % 4 ? 6 : 8), draw() % 12 ? 1 + draw() % 9 : 0);
        for (uint32_t i = draw() % 3; i > 0; --i) preempted.push_back(1 + draw() % (draw() % 4 ? 3 : 8));
        std::set<uint64_t> named;
        bool keeps = true;
        uint64_t tokens = 0;
        int running = 3;
        for (const uint64_t id : preempted) {
            keeps = keeps && id <= 3 && named.insert(id).second;
            running -= 1;
        }
        for (const auto& [id, n] : items) {
            keeps = keeps && id <= 6 && n > 0 && named.insert(id).second;
            tokens += n;
            running += id > 3;
        }
        keeps = keeps && tokens <= 20 && running <= 4;
        ASSERT_EQ(b.breach(items, preempted).empty(), keeps) << trial;
        if (keeps) {
            ASSERT_EQ(b.plan.items.size(), items.size());
            ASSERT_EQ(b.plan.preemptions.size(), preempted.size());
        }
        good += keeps;
        bad += !keeps;
    }
    EXPECT_GT(good, 500u);
    EXPECT_GT(bad, 500u);
}

}  // namespace
}  // namespace patchbay::engine::testing::plan_check_test
