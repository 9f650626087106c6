// The orders of the schedulers: who is admitted first, who is preempted.
#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies::scheduler_orders_test {
namespace {

using Tokens = std::map<uint64_t, uint32_t>;
using Ids = std::vector<uint64_t>;

TEST(Priority, LowerValuesFirstThenArrivalThenId) {
    World w("priority");
    w.wait(1, 10).priority = 2;
    w.wait(2, 10).priority = 0;
    w.wait(3, 10).priority = 1;
    w.wait(4, 10).priority = 0;
    EXPECT_EQ(w.plan().order, (Ids{2, 4, 3, 1}));
}

TEST(Priority, TheWorstIsPreemptedWhenABetterOneNeedsAPage) {
    World w("priority");
    w.in.free_pages = 0;
    w.run(1, 32, 1, 32).priority = 5;
    w.run(2, 32, 1, 32).priority = 0;
    const Planned p = w.plan();
    EXPECT_EQ(p.preempted, (Ids{1}));
    EXPECT_EQ(p.tokens, (Tokens{{2, 1}}));
}

TEST(Priority, AgeingLetsTheOldPass) {
    World w("priority", {{"ageing", "10"}});
    w.in.now_us = 2'000'000;
    w.wait(1, 10).priority = 5;
    w.waiting.back().arrival_us = 0; // two seconds: 5 − 20
    w.wait(1999, 10).priority = 0;
    EXPECT_EQ(w.plan().order.front(), 1u);
}

TEST(Priority, AgeCountsWhenPagesRunOut) {
    World w("priority", {{"ageing", "10"}});
    w.in.now_us = 2'000'000;
    w.in.free_pages = 0;
    w.run(1, 32, 1, 32).priority = 5;
    w.running.back().arrival_us = 0; // two seconds: 5 − 20
    w.run(1999, 32, 1, 32).priority = 0;
    EXPECT_EQ(w.plan().preempted, (Ids{1999}));
}

TEST(Srpt, CachedTokensOfOneThatRunsAreComputedAlready) {
    World w("srpt", {{"ageing", "0"}, {"predictor", "constant"}, {"output", "1"}});
    w.in.max_num_seqs = 1;
    w.run(1, 100, 0, 64).cached_tokens = 64; // 36 are left; it runs, so these are in its 64
    w.wait(2, 50);
    EXPECT_EQ(w.plan().preempted, Ids{});
    w.wait(3, 200).cached_tokens = 195;
    w.running[0].computed_tokens = 16; // 84 are left
    EXPECT_EQ(w.plan().preempted, Ids{1});
}

TEST(Srpt, LearnsNothingFromRequestsWithoutOutput) {
    World w("srpt", {{"ageing", "0"}, {"output", "100"}});
    const auto end = [&w](uint64_t id, uint32_t prompt, uint32_t outputs) {
        w.arrive(w.wait(id, prompt));
        w.waiting.clear();
        w.finish(id, outputs);
    };
    end(1, 20, 0); // an embedding
    end(2, 40, 10);
    w.wait(3, 30);
    w.wait(4, 40);
    EXPECT_EQ(w.plan().order, (Ids{4, 3})); // 40 + 10, and 30 + 100 of which nothing is known
}

TEST(Fair, SiblingsPayForWhatTheyCompute) {
    World w("fair", {{"output_weight", "0"}});
    w.in.max_num_seqs = 3;
    const auto wait = [&w](uint64_t id, uint64_t group, uint32_t tenant, uint32_t prompt) -> pb_sequence& {
        pb_sequence& s = w.wait(id, prompt);
        s.group = group;
        s.tenant = tenant;
        return s;
    };
    wait(1, 1, 1, 100);
    wait(2, 1, 1, 100).cached_tokens = 99;
    wait(3, 3, 2, 101);
    EXPECT_EQ(w.plan().order, (Ids{1, 3, 2})); // 0 : 0, 100 : 0, 100 : 101
    w.waiting.clear();
    wait(4, 4, 1, 10);
    wait(5, 5, 2, 10);
    EXPECT_EQ(w.plan().order, (Ids{4, 5})); // 101 : 101; two prompts would be 200
}

TEST(Fair, ATenantWhoseRequestsAreNotShownKeepsItsCounter) {
    World w("fair", {{"output_weight", "0"}});
    w.in.max_num_seqs = 1;
    for (uint64_t id : {1, 2, 3}) {
        w.wait(id, 100).tenant = id == 2 ? 2 : 1;
        w.arrive(w.waiting.back());
    }
    EXPECT_EQ(w.plan().order, (Ids{1})); // 0 : 0
    const auto waiting = std::vector(w.waiting.begin() + 1, w.waiting.end());
    w.waiting.clear(); // as where a beam search before them waits for seats
    w.run(1, 100, 1, 100).tenant = 1;
    EXPECT_EQ(w.plan().order, (Ids{1}));
    w.finish(1, 1);
    w.running.clear();
    w.waiting = waiting;
    EXPECT_EQ(w.plan().order, (Ids{2})) << "100 : 0";
}

TEST(Edf, ABeamGivesItsSeatUpOnlyWhereNoOtherSequenceMay) {
    World w("edf");
    w.in.max_num_seqs = 3;
    for (uint64_t id : {1, 11}) w.run(id, 40, 1, 40).beams = 2; // without a deadline
    w.run(2, 40, 1, 40).deadline_us = 9'000'000;
    w.wait(3, 10).deadline_us = 5'000'000;
    EXPECT_EQ(w.plan().preempted, Ids{2});
    w.running[2].deadline_us = 4'000'000;
    EXPECT_EQ(w.plan().preempted, Ids{11});
}

TEST(Sjf, TheShortestPromptGoesFirst) {
    World w("sjf", {{"ageing", "0"}});
    w.wait(1, 300);
    w.wait(2, 20);
    w.wait(3, 100);
    EXPECT_EQ(w.plan().order, (Ids{2, 3, 1}));
}

TEST(Sjf, AgeingKeepsTheLongFromStarving) {
    World w("sjf", {{"ageing", "100"}});
    w.in.now_us = 5'000'000;
    w.wait(1, 300);
    w.waiting.back().arrival_us = 0; // five seconds at 100 tokens/s: 300 − 500
    w.wait(4999, 20);
    EXPECT_EQ(w.plan().order, (Ids{1, 4999}));
}

TEST(Static, NoRequestJoinsUntilTheBatchHasEnded) {
    World w("static", {{"batch_size", "2"}});
    for (uint64_t id : {1, 2, 3}) w.wait(id, 10);
    EXPECT_EQ(w.plan().order, (Ids{1, 2}));
    w.waiting.erase(w.waiting.begin(), w.waiting.begin() + 2);
    w.run(1, 10, 1, 10);
    EXPECT_EQ(w.plan().order, (Ids{1})); // 2 has ended, 3 waits for 1
    w.running.clear();
    EXPECT_EQ(w.plan().order, (Ids{3}));
}

TEST(Static, ABatchLargerThanTheBudgetIsFormedOverSeveralSteps) {
    World w("static", {{"batch_size", "2"}});
    w.in.max_num_batched_tokens = 100;
    w.wait(1, 100);
    w.wait(2, 50);
    EXPECT_EQ(w.plan().order, (Ids{1}));
    w.waiting.erase(w.waiting.begin());
    w.run(1, 100, 1, 100);
    w.wait(3, 10);
    EXPECT_EQ(w.plan().order, (Ids{1, 2})); // the second place was still open, a third there is none
}

TEST(Static, OneThatWasPreemptedComesBackIntoItsBatch) {
    World w("static", {{"batch_size", "2"}});
    w.run(1, 100, 1, 100);
    w.wait(2, 50).flags = PB_SEQ_PREEMPTED;
    w.wait(3, 10);
    EXPECT_EQ(w.plan().order, (Ids{1, 2}));
}

TEST(Static, ABatchHasNotEndedWhileOneOfItWaits) {
    World w("static", {{"batch_size", "2"}});
    w.wait(2, 50).flags = PB_SEQ_PREEMPTED;
    w.wait(3, 10);
    EXPECT_EQ(w.plan().order, (Ids{2}));
    w.waiting.erase(w.waiting.begin());
    EXPECT_EQ(w.plan().order, (Ids{3}));
}

TEST(Static, OneThatWasPreemptedPassesFurtherOutputsInFrontOfIt) {
    World w("static", {{"batch_size", "2"}});
    w.run(1, 100, 1, 100);
    w.wait(11, 100).group = 1; // it came to the front after 2 was preempted
    w.wait(2, 50).flags = PB_SEQ_PREEMPTED;
    w.wait(3, 10);
    EXPECT_EQ(w.plan().order, (Ids{1, 2}));
    w.running.clear();
    EXPECT_EQ(w.plan().order, (Ids{2})) << "the batch has not ended while 2 waits";
    w.waiting.erase(w.waiting.begin() + 1);
    EXPECT_EQ(w.plan().order, (Ids{11, 3}));
}

TEST(Schedulers, RefuseKeysAndValuesOutsideTheirSchema) {
    const auto refusal = [](const std::string& name, const host::Settings& s) {
        return registry().scheduler(name, s, services()).error();
    };
    EXPECT_EQ(refusal("sjf", {{"agein", "1"}}), "unknown key 'agein' of scheduler 'sjf' (did you mean 'ageing'?)");
    EXPECT_EQ(refusal("static", {{"batch_size", "-1"}}), "'batch_size' is -1, expected 0 to 65536 sequences");
    EXPECT_EQ(refusal("static", {{"batch_size", "two"}}), "'batch_size' is 'two', expected a whole number");
    EXPECT_EQ(refusal("fair", {{"prompt_weight", "0"}, {"output_weight", "0"}}),
              "scheduler 'fair': create: prompt_weight and output_weight are both 0");
    EXPECT_EQ(refusal("fcsf", {}), "no scheduler 'fcsf' (did you mean 'fcfs'?)");
}

}  // namespace
}  // namespace patchbay::policies::scheduler_orders_test
