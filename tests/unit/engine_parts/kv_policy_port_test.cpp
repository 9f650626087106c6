// What a kv_policy hears, and what becomes of one that is wrong.
#include "engine/placement/kv_policy_port.hpp"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "engine/loop/step_context.hpp"
#include "engine/step_report.hpp"
#include "patchbay/sdk/kv_policy.hpp"
#include "unit/engine_parts/fake_policies.hpp"
#include "unit/host/slot_steps.hpp"

namespace patchbay::engine::testing::kv_policy_port_test {
namespace {

using ::testing::ElementsAre;

struct FakeKvPolicy {
    std::vector<uint32_t> pages; // that are cached, in the order in which they came to be
    std::map<uint32_t, uint64_t> contents; // of each page, until it is removed
    uint32_t total = 0, used_pages = 0, mixed_up = 0; // pages that got other contents without a removal
    bool fails = false, names_nothing = false, names_a_stranger = false;

    void reset(uint32_t total_pages) { total = total_pages, pages.clear(), contents.clear(); }
    void cached(const pb_kv_page& p) {
        if (fails) throw Error(PB_FAILED, "it does not want to");
        const auto [known, first] = contents.try_emplace(p.page, p.block);
        if (!first && known->second != p.block) mixed_up += 1;
        pages.push_back(p.page);
    }
    void used(uint32_t page) { used_pages += 1, std::erase(pages, page); }
    void removed(uint32_t page) { contents.erase(page), std::erase(pages, page); }
    void choose(Victims& victims) { // the latest first
        if (fails) throw Error(PB_FAILED, "it does not want to");
        if (names_a_stranger) victims.add(4711);
        for (size_t i = pages.size(); !names_nothing && i-- > 0;) victims.add(pages[i]);
    }
};
constexpr pb_component kFakeKvPolicy = patchbay::kv_policy<FakeKvPolicy>({"fake", "1.0.0", "plays"});

class PortTest : public ::testing::Test {
  protected:
    PortTest() : PortTest(play<FakeKvPolicy>(kFakeKvPolicy)) {}

    void compute(int first) { // a text of two blocks, which are cached after it
        std::vector<int32_t> text(8);
        std::iota(text.begin(), text.end(), first);
        kv::BlockTable t;
        kv.prefixes().adopt(t, text);
        ASSERT_TRUE(kv.tables().grow(t, 8));
        kv.prefixes().cache_full_blocks(t, text);
        kv.tables().release(t);
    }
    uint32_t found(int first) {
        std::vector<int32_t> text(9);
        std::iota(text.begin(), text.end(), first);
        return kv.prefixes().count_cached(text);
    }
    const StepReport& report() const { return context.report; }
    void swap_in(std::unique_ptr<host::Component> next) {
        const auto greet = [&](const host::Component&) { EXPECT_TRUE(port.adopt()); };
        pending = host::testing::put_on_probation(port.slot(), std::move(next), "kv_policy", "next", 1, 4, greet);
        EXPECT_TRUE(port.slot().previous());
    }

    VirtualClock clock;
    StepContext context;
    std::vector<host::Identity> plugins = {{.kind = "kv_policy", .name = "fake", .version = {}, .sha256 = {},
                                            .build = {}, .path = {}}};
    SwapJournal journal{context, plugins};
    kv::KvCache kv{4, 4, kv::PrefixCaching::kOn, "m"};
    FakeKvPolicy* policy;
    KvPolicyPort port;
    std::shared_ptr<host::Swap> pending;

  private:
    explicit PortTest(Played<FakeKvPolicy> made)
        : policy(&made.policy), port(view_of(std::move(made.component)), kv, clock, context, journal) {
        EXPECT_TRUE(port.adopt());
    }
    static host::KvPolicy view_of(std::unique_ptr<host::Component> c) {
        const auto* table = c->table<pb_kv_policy>();
        return {std::move(c), table};
    }
};

TEST_F(PortTest, ThePolicysChoiceIsEvicted) {
    EXPECT_EQ(policy->total, 4u);
    compute(0);
    compute(100);
    compute(200); // in place of the latest, which by age would be the last to go
    EXPECT_EQ(found(0), 8u);
    EXPECT_EQ(found(100), 0u);
    EXPECT_EQ(found(200), 8u);
    EXPECT_EQ(kv.pool().eviction().chosen_evictions(), 2u);
    EXPECT_EQ(report().calls.kv_policy_faults, 0u);
}

TEST_F(PortTest, HearsOfPagesThatAreUsedAgain) {
    compute(0);
    compute(0); // whose last block is not looked up
    compute(100);
    compute(200);
    EXPECT_EQ(policy->used_pages, 1u);
}

TEST_F(PortTest, AnErrorIsAFaultAndTheOldestGoes) {
    compute(0);
    compute(100);
    policy->fails = true;
    compute(200);
    EXPECT_EQ(found(0), 0u);
    EXPECT_EQ(found(100), 8u);
    EXPECT_EQ(report().calls.kv_policy_faults, 2u) << "of update and of choose";
    EXPECT_EQ(report().calls.kv_policy_breaches, 0u);
    EXPECT_EQ(kv.pool().eviction().chosen_evictions(), 0u);
}

TEST_F(PortTest, APageThatIsNotCachedIsAFaultAndTheOthersCount) {
    compute(0);
    compute(100);
    policy->names_a_stranger = true;
    compute(200);
    EXPECT_EQ(report().calls.kv_policy_faults, 1u);
    EXPECT_EQ(report().calls.kv_policy_breaches, 1u);
    EXPECT_EQ(kv.pool().eviction().chosen_evictions(), 1u);
    EXPECT_EQ(kv.pool().eviction().evictions(), 2u);
}

TEST_F(PortTest, TooFewPagesAreAFault) {
    compute(0);
    compute(100);
    policy->names_nothing = true;
    compute(200);
    EXPECT_EQ(report().calls.kv_policy_faults, 1u);
    EXPECT_EQ(report().calls.kv_policy_breaches, 1u);
    EXPECT_EQ(found(0), 0u);
}

TEST_F(PortTest, AdoptsWhatIsCachedInTheOrderOfAge) {
    compute(0);
    compute(100);
    policy->pages = {9, 9, 9};
    ASSERT_TRUE(port.adopt());
    EXPECT_THAT(policy->pages, ElementsAre(1, 0, 3, 2));
    compute(200);
    EXPECT_EQ(found(0), 8u) << "what was pending is not said twice";
    EXPECT_EQ(report().calls.kv_policy_faults, 0u);
}

TEST_F(PortTest, GivesChangesOnWhereNothingIsEvicted) {
    for (int i = 0; i < 5000; ++i) compute(0);
    EXPECT_GT(policy->used_pages, 1000u);
}

TEST_F(PortTest, OneThatTakesOverGetsAllThatIsCachedAndItsPredecessorStaysUpToDate) {
    compute(0);
    Played<FakeKvPolicy> next = play<FakeKvPolicy>(kFakeKvPolicy);
    swap_in(std::move(next.component));
    EXPECT_EQ(next.policy.pages, policy->pages);
    EXPECT_EQ(next.policy.pages.size(), 2u);
    compute(100);
    port.update();
    EXPECT_EQ(next.policy.pages.size(), 4u);
    EXPECT_EQ(policy->pages, next.policy.pages);
}

// Whatever comes and goes between two portions, and of whatever size these are.
TEST_F(PortTest, OneThatIsToTakeOverLearnsTheOrderOfAgeInPortions) {
    for (const size_t portion : {1, 2, 3, 7}) {
        Played<FakeKvPolicy> next = play<FakeKvPolicy>(kFakeKvPolicy);
        int texts = 0;
        for (bool knows_all = false; !knows_all;) {
            const Result<bool> warm = port.warm_up(*next.component, portion);
            ASSERT_TRUE(warm) << warm.error();
            knows_all = *warm;
            if (!knows_all && ++texts <= 20) compute(100 * (texts * 7 % 5)); // hits, evictions, pages that come back
        }
        EXPECT_TRUE(texts > 0 || portion > 4);
        port.update();
        EXPECT_EQ(next.policy.pages, policy->pages) << "in portions of " << portion;
        EXPECT_EQ(next.policy.mixed_up, 0u) << "in portions of " << portion;
        EXPECT_GT(next.policy.pages.size(), 2u);
        policy->pages.clear(); // what it had is known: adopt() gives it again
        ASSERT_TRUE(port.adopt());
    }
}

TEST_F(PortTest, OneThatKnowsAllGetsWhatChangesUntilItTakesOver) {
    compute(0);
    Played<FakeKvPolicy> next = play<FakeKvPolicy>(kFakeKvPolicy);
    ASSERT_EQ(*port.warm_up(*next.component), true);
    compute(0); // a step that was in flight: pages that are used, cached, evicted
    compute(100);
    compute(200);
    port.update();
    swap_in(std::move(next.component));
    EXPECT_EQ(next.policy.pages, policy->pages);
    EXPECT_EQ(next.policy.pages.size(), 4u);
}

TEST_F(PortTest, OneThatIsToTakeOverAndFailsIsNotAskedAgain) {
    compute(0);
    Played<FakeKvPolicy> next = play<FakeKvPolicy>(kFakeKvPolicy);
    next.policy.fails = true;
    EXPECT_EQ(port.warm_up(*next.component).error(), "kv_policy 'fake': update: it does not want to");
    compute(100);
    compute(200);
    port.update();
    EXPECT_EQ(report().calls.kv_policy_faults, 0u);
}

TEST_F(PortTest, OneThatKnowsAllTakesTheSlotWithoutAnotherAdoption) {
    compute(0);
    Played<FakeKvPolicy> next = play<FakeKvPolicy>(kFakeKvPolicy);
    EXPECT_EQ(*port.warm_up(*next.component), true);
    next.policy.pages = {7};
    swap_in(std::move(next.component));
    EXPECT_THAT(next.policy.pages, ElementsAre(7));
}

TEST_F(PortTest, OneOnProbationThatFailsLeavesTheChoiceToItsPredecessor) {
    compute(0);
    compute(100);
    Played<FakeKvPolicy> next = play<FakeKvPolicy>(kFakeKvPolicy);
    swap_in(std::move(next.component));
    next.policy.names_nothing = true;
    compute(200); // the predecessor gives up the latest
    EXPECT_EQ(found(0), 8u);
    EXPECT_EQ(found(100), 0u);
    EXPECT_EQ(port.slot().previous(), nullptr);
    EXPECT_EQ(report().calls.kv_policy_faults, 0u);
    ASSERT_EQ(report().swaps.size(), 1u);
    EXPECT_EQ(report().swaps[0].text(), "swap kv_policy fake→next: rolled back in phase choose: names 0 pages, "
                                        "expected 2");
}

TEST(KvPolicyPort, WithoutAPolicyTheCacheKeepsItsOrder) {
    VirtualClock clock;
    StepContext context;
    std::vector<host::Identity> plugins;
    SwapJournal journal(context, plugins);
    kv::KvCache kv{4, 4, kv::PrefixCaching::kOn, "m"};
    KvPolicyPort port({}, kv, clock, context, journal);
    EXPECT_TRUE(port.adopt());
    EXPECT_EQ(port.component(), nullptr);
}

}  // namespace
}  // namespace patchbay::engine::testing::kv_policy_port_test
