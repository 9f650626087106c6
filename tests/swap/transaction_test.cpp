// Several slots of a running engine are swapped together: at one boundary, with one outcome.
#include <gmock/gmock.h>

#include <set>

#include "host/slot.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::transaction_test {
namespace {

using namespace testing;
using host::SwapState;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct To { // a slot, and what is to take it
    SwapSlot slot;
    config::PluginChoice choice;
};

std::vector<std::shared_ptr<host::Swap>> swap_together(Swapping& s, const std::vector<To>& to,
                                                       const host::Registry& registry = swap_registry()) {
    std::vector<SwapRequest> requests;
    for (const To& t : to) requests.push_back({t.slot, t.choice, registry, prober()});
    return s.engine->control().swap_together(requests);
}

std::string slots_of(const Engine& e) { return name_in(e, "scheduler") + " " + name_in(e, "sampler"); }

TEST(SwapTransaction, OfPoliciesAtEveryBoundaryLeavesEveryTextAsItIs) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    c.engine.enable_prefix_caching = true;
    c.kv_policy = config::PluginChoice{"lru", {}};
    Swapping s(c);
    s.add_requests();
    size_t n = 0;
    EXPECT_EQ(s.run([&] {
        swap_together(s,
                      {{SwapSlot::kScheduler, {n % 2 == 0 ? "sjf" : "fcfs", {}}},
                       {SwapSlot::kSampler, {"standard", {}}},
                       {SwapSlot::kAttention, {"paged", {}}}},
                      n % 2 == 0 ? other_builds() : swap_registry());
        n += 1;
        EXPECT_TRUE(s.engine->audit());
    }),
              undisturbed());
    std::map<uint64_t, std::set<uint64_t>> begun, ended; // steps of each transaction
    size_t committed = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
        EXPECT_GT(r.transaction, 0u);
        begun[r.transaction].insert(r.step);
        if (r.state != SwapState::kCommitted) continue;
        ended[r.transaction].insert(r.end_step);
        committed += 1;
    }
    EXPECT_GT(committed, 60u);
    EXPECT_EQ(committed, 3 * ended.size());
    for (const auto& [number, steps] : begun) EXPECT_EQ(steps.size(), 1u) << number;
    for (const auto& [number, steps] : ended) EXPECT_EQ(steps.size(), 1u) << number;
}

struct Refused {
    const char* from; // scheduler
    To wrong;
    const char* text; // of its record, or how it begins

    friend std::ostream& operator<<(std::ostream& out, const Refused& r) { return out << r.text; }
};

class TransactionRefusal : public ::testing::TestWithParam<Refused> {};

TEST_P(TransactionRefusal, OfOneSlotLeavesAllAsTheyWere) {
    for (const bool wrong_is_second : {true, false}) {
        const auto run = [&](bool swaps) {
            Swapping s(busy_engine(GetParam().from, "remembers"));
            s.add_requests();
            for (int i = 0; i < 3; ++i) s.step();
            if (swaps) {
                std::vector<To> to = {{SwapSlot::kSampler, {"remembers", {}}}, GetParam().wrong};
                if (!wrong_is_second) std::swap(to[0], to[1]);
                const auto both = swap_together(s, to);
                s.step();
                const host::SwapRecord wrong = both[wrong_is_second]->record();
                const host::SwapRecord other = both[!wrong_is_second]->record();
                EXPECT_EQ(wrong.state, SwapState::kRefused);
                EXPECT_EQ(other.state, SwapState::kRefused);
                EXPECT_THAT(wrong.text(), StartsWith(GetParam().text));
                EXPECT_EQ(other.phase, "together");
                EXPECT_THAT(other.reason, StartsWith(wrong.kind + " "));
                EXPECT_THAT(other.reason, HasSubstr("was refused in phase " + wrong.phase + ": " + wrong.reason));
                EXPECT_EQ(records(s.steps).size(), 2u);
                EXPECT_EQ(slots_of(*s.engine), GetParam().from + std::string(" remembers"));
            }
            s.run();
            const std::string name = GetParam().from;
            return std::tuple(s.texts, s.steps.size(), s.gauges.at(name + "/plans"), s.gauges.at("remembers/rows"));
        };
        EXPECT_EQ(run(true), run(false)) << wrong_is_second;
    }
}

const Refused kRefused[] = {
    {"fcfs", {SwapSlot::kScheduler, {"sjff", {}}}, "swap scheduler fcfs→sjff: refused in phase find: "},
    {"fcfs", {SwapSlot::kScheduler, {"sjf", {{"agein", "2"}}}}, "swap scheduler fcfs→sjf: refused in phase create: "},
    {"fcfs", {SwapSlot::kScheduler, {"faulty", {{"fault", "over_budget"}}}},
     "swap scheduler fcfs→faulty: refused in phase probe: "},
    {"counting_1", {SwapSlot::kScheduler, {"counting_3", {}}},
     "swap scheduler counting_1→counting_3: refused in phase load: cannot read state 'counting/1'"},
    {"counting_5", {SwapSlot::kScheduler, {"counting_1", {}}},
     "swap scheduler counting_5→counting_1: refused in phase save: has lost its notes"},
    {"fcfs", {SwapSlot::kProposer, {"nothing", {}}}, "swap proposer ngram→nothing: refused in phase find: "},
};
INSTANTIATE_TEST_SUITE_P(SwapTransaction, TransactionRefusal, ::testing::ValuesIn(kRefused));

TEST(SwapTransaction, NamesEachSlotOnce) {
    Swapping s(busy_engine());
    const auto both = swap_together(s, {{SwapSlot::kScheduler, {"sjf", {}}}, {SwapSlot::kScheduler, {"static", {}}}});
    EXPECT_EQ(both[0]->record().text(),
              "swap scheduler fcfs→sjf: refused in phase find: this slot is named twice, expected once in a "
              "transaction");
    EXPECT_EQ(both[1]->record().state, SwapState::kRefused);
}

struct Failing {
    const char* name;
    To to;
    const char* phase;

    friend std::ostream& operator<<(std::ostream& out, const Failing& f) { return out << f.name; }
};

class TransactionFault : public ::testing::TestWithParam<Failing> {};

TEST_P(TransactionFault, OfOneOnProbationBringsAllPredecessorsBack) {
    const Failing& f = GetParam();
    const To right = f.to.slot == SwapSlot::kScheduler ? To{SwapSlot::kSampler, {"remembers", {}}}
                                                       : To{SwapSlot::kScheduler, {"sjf", {}}};
    for (const int at : {1, 3}) {
        config::EngineConfig c = busy_engine("fcfs", "greedy");
        c.swap = {.probation_steps = 6, .max_call_ms = 1};
        TickingClock clock(10'000);
        Swapping s(c, &clock);
        s.add_requests();
        for (int i = 0; i < 3; ++i) s.step();
        To wrong = f.to;
        wrong.choice.settings["at"] = std::to_string(at);
        const auto both = swap_together(s, {right, wrong});
        EXPECT_EQ(s.run([&] { EXPECT_TRUE(s.engine->audit()); }), greedy_undisturbed()) << at;
        EXPECT_EQ(slots_of(*s.engine), "fcfs greedy");
        EXPECT_EQ(name_in(*s.engine, "attention"), "paged");
        const host::SwapRecord failed = both[1]->record(), other = both[0]->record();
        EXPECT_EQ(failed.state, SwapState::kRolledBack) << failed.text();
        EXPECT_EQ(failed.phase, f.phase);
        EXPECT_EQ(other.state, SwapState::kRolledBack) << other.text();
        EXPECT_EQ(other.phase, "together");
        EXPECT_THAT(other.reason, HasSubstr("→faulty was rolled back in phase " + failed.phase + ": "));
        EXPECT_EQ(other.end_step, failed.end_step);
        EXPECT_EQ(records(s.steps).size(), 4u); // two begin, two end
    }
}
INSTANTIATE_TEST_SUITE_P(
    SwapTransaction, TransactionFault,
    ::testing::Values(
        Failing{"scheduler", {SwapSlot::kScheduler, {"faulty", {{"fault", "throws"}, {"blocks", "509"}}}}, "plan"},
        Failing{"slow_scheduler", {SwapSlot::kScheduler, {"faulty", {{"fault", "slow"}, {"blocks", "509"}}}}, "time"},
        Failing{"sampler", {SwapSlot::kSampler, {"faulty", {{"fault", "throws"}, {"vocab", "300"}}}}, "sample"},
        Failing{"attention",
                {SwapSlot::kAttention, {"faulty", {{"fault", "throws_in_plan"}, {"seqs", "3"}}}},
                "run"}));

TEST(SwapTransaction, ThatCannotEnterOneSlotIsOutOfAll) {
    Swapping s(busy_engine("fcfs", "greedy"));
    s.add_requests();
    for (int i = 0; i < 3; ++i) s.step();
    const auto both =
        swap_together(s, {{SwapSlot::kScheduler, {"sjf", {}}},
                          {SwapSlot::kAttention, {"faulty", {{"fault", "throws_in_bind"}, {"seqs", "3"}}}}});
    s.step();
    for (const auto& swap : both) EXPECT_EQ(swap->record().state, SwapState::kRolledBack) << swap->record().text();
    EXPECT_EQ(s.run(), greedy_undisturbed());
}

TEST(SwapTransaction, WaitsUntilAllItsSlotsAreFreeAndKeepsItsPlaceInLine) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 3;
    Swapping s(c);
    s.add_requests();
    const auto before = s.swap(SwapSlot::kSampler, {"standard", {}}, other_builds());
    const auto both = swap_together(s, {{SwapSlot::kScheduler, {"sjf", {}}}, {SwapSlot::kSampler, {"standard", {}}}});
    const auto after = s.swap(SwapSlot::kScheduler, {"static", {}});
    EXPECT_EQ(s.run(), undisturbed());
    for (const auto& swap : {before, both[0], both[1], after})
        EXPECT_EQ(swap->record().state, SwapState::kCommitted) << swap->record().text();
    EXPECT_EQ(before->record().step, 1u);
    EXPECT_GT(both[0]->record().step, before->record().end_step);
    EXPECT_EQ(both[0]->record().step, both[1]->record().step);
    EXPECT_GT(after->record().step, both[0]->record().end_step);
    EXPECT_EQ(name_in(*s.engine, "scheduler"), "static");
}

TEST(SwapTransaction, IsCommittedWhenTheLastOfItHasPassed) {
    config::EngineConfig c = busy_engine();
    c.engine.num_speculative_tokens = 1;
    c.swap.probation_steps = 2;
    Swapping s(c);
    s.add_requests();
    const auto both = swap_together(s, {{SwapSlot::kScheduler, {"sjf", {}}}, {SwapSlot::kSampler, {"standard", {}}}});
    s.step(); // of a long prompt, whose chunk samples nothing, or so
    s.step();
    while (both[1]->record().state == SwapState::kOnProbation) {
        EXPECT_EQ(both[0]->record().state, SwapState::kOnProbation);
        s.step();
    }
    EXPECT_EQ(both[0]->record().state, SwapState::kCommitted);
    EXPECT_EQ(both[0]->record().end_step, both[1]->record().end_step);
    s.run();
}

TEST(SwapTransaction, DoesNotFitALineThatIsFull) {
    Swapping s(busy_engine());
    for (size_t i = 0; i < host::SwapLine::kMaxPendingSwaps; ++i) s.swap(SwapSlot::kSampler, {"standard", {}});
    const auto both = swap_together(s, {{SwapSlot::kScheduler, {"sjf", {}}}, {SwapSlot::kSampler, {"greedy", {}}}});
    EXPECT_THAT(both[1]->record().text(), HasSubstr("refused in phase post: 64 swaps are in line already"));
    EXPECT_THAT(both[0]->record().text(), HasSubstr("refused in phase together: sampler standard→greedy was refused"));
    const auto alone = s.swap(SwapSlot::kScheduler, {"static", {}}); // nothing of it is left in the other line
    s.add_requests();
    s.step();
    EXPECT_EQ(alone->record().state, SwapState::kOnProbation);
    s.run();
}

TEST(SwapTransaction, WithAKvPolicyAtEveryBoundaryLeavesEveryTextAsItIs) {
    config::EngineConfig c = busy_engine("fcfs", "greedy");
    c.swap.probation_steps = 1;
    c.engine.num_blocks = 29; // so that pages are evicted
    c.engine.enable_prefix_caching = true;
    c.kv_policy = config::PluginChoice{"lru", {}};
    Swapping s(c);
    s.add_requests();
    s.add_requests(); // the same prompts again
    size_t n = 0;
    s.run([&] {
        const bool even = n++ % 2 == 0;
        swap_together(s, {{SwapSlot::kKvPolicy, {even ? "lfu" : "lru", {}}},
                          {SwapSlot::kScheduler, {even ? "sjf" : "fcfs", {}}}});
        ASSERT_TRUE(s.engine->audit());
    });
    Swapping alone(c);
    alone.add_requests();
    alone.add_requests();
    EXPECT_EQ(s.texts, alone.run());
    size_t committed = 0;
    for (const host::SwapRecord& r : records(s.steps)) committed += r.state == SwapState::kCommitted;
    EXPECT_GT(committed, 20u);
    uint64_t evictions = 0;
    for (const StepReport& r : s.steps) {
        evictions += r.kv.chosen_evictions;
        EXPECT_EQ(r.calls.kv_policy_faults, 0u) << "it was not given what is cached";
    }
    EXPECT_GT(evictions, 5u) << "it was not put to the test";
}

}  // namespace
}  // namespace patchbay::engine::transaction_test
