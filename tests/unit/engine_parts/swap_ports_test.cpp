// The slots of proposer and kv_policy, as their swaps see them. Those of scheduler and sampler: swaps_test.cpp.
#include "engine/swap/swap_ports.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "engine/loop/page_copies.hpp"
#include "engine/swap/swaps.hpp"
#include "engine/view.hpp"
#include "patchbay/sdk/kv_policy.hpp"
#include "unit/engine_parts/step_neighbours.hpp"

namespace patchbay::engine::testing::swap_ports_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct FakeEvictions { // a kv_policy
    std::vector<uint32_t> pages; // that are cached
    bool fails = false;
    void reset(uint32_t) { pages.clear(); }
    void cached(const pb_kv_page& p) {
        if (fails) throw Error(PB_FAILED, "it does not want to");
        pages.push_back(p.page);
    }
    void used(uint32_t page) { std::erase(pages, page); }
    void removed(uint32_t page) { std::erase(pages, page); }
    void choose(Victims& victims) {
        for (const uint32_t p : pages) victims.add(p);
    }
};
constexpr pb_component kFakeEvictions = patchbay::kv_policy<FakeEvictions>({"fake", "1.0.0", "plays"});

World with_drafts() {
    World w;
    w.caching = kv::PrefixCaching::kOn;
    w.settings.num_speculative_tokens = 3;
    return w;
}

struct Bench : RowNeighbours {
    Bench() : RowNeighbours(with_drafts()) {
        plugins = {named("proposer", "fake"), named("kv_policy", "fake")};
        speculation.mode = config::DraftMode::kAdaptive;
    }
    config::SpeculationSettings& adaptive() {
        speculation.mode = config::DraftMode::kAdaptive;
        return speculation;
    }
    template <class View, class Table>
    static View typed(std::unique_ptr<host::Component> c) {
        const auto* const table = static_cast<const Table*>(c->type().vtable);
        return {std::move(c), table};
    }
    template <class T>
    T& post(SwapPort& port, const pb_component& type, const char* kind) {
        Played<T> next = play<T>(type);
        port.slot().line().post(port.slot().line().prepare(std::move(next.component), named(kind, "next")));
        return next.policy;
    }
    // A text of two full blocks, whose pages are cached then and in no one's use.
    void cache(TokenId first) {
        std::vector<TokenId> text(8);
        std::iota(text.begin(), text.end(), first);
        kv::BlockTable t;
        kv.prefixes().adopt(t, text);
        if (!kv.tables().grow(t, 8)) throw std::runtime_error("too few pages");
        kv.prefixes().cache_full_blocks(t, text);
        kv.tables().release(t);
    }

    config::SpeculationSettings speculation;
    Aborts aborts;
    DraftVerification verification{speculation, kVocab, drafts};
    BatchBuilder batches{{form, kv, rows, constraints, prompt_logprobs, pooling, branches, draft_kv, kVocab, context}};
    PageCopies copies{batches, executor, kv};
    Proposals::Parts of_proposals{settings,    adaptive(),   kVocab, kMaxModelLen, sequences, kv,
                                  beams,       constraints,  verification, drafts, draft_kv,  aborts,
                                  copies,      clock,        context,      journal};
    Proposals proposals{of_proposals, typed<host::Proposer, pb_proposer>(play<FakeProposer>(kFakeProposer).component),
                        nullptr};
    ProposerSwaps proposer{proposals, context};
    KvPolicyPort policy{typed<host::KvPolicy, pb_kv_policy>(play<FakeEvictions>(kFakeEvictions).component), kv, clock,
                        context, journal};
    KvPolicySwaps kv_policy{policy, sequences, context};
    config::SwapSettings swap_settings{.probation_steps = 1, .max_call_ms = 0};
    Swaps swaps{{swap_settings, {&proposer, &kv_policy}, journal, context, clock}};
};

TEST(ProposerSwaps, WithoutAProposerThereIsNoRoomForOne) {
    Bench b;
    EXPECT_TRUE(b.proposer.takes_swaps());
    Proposals none(b.of_proposals, {}, nullptr);
    const ProposerSwaps part(none, b.context);
    EXPECT_THAT(part.takes_swaps().error(), HasSubstr("the engine was started without one"));
}

TEST(ProposerSwaps, ANewOneIsJudgedByItsOwnDrafts) {
    Bench b;
    const auto length_of_next = [&] {
        Sequence& s = b.decode(4);
        b.proposals.propose();
        b.kv.tables().release(s.kv.table);
        b.admission.leave(s);
        b.sequences.remove(s.id);
        return b.report().drafts.length;
    };
    const uint32_t first = length_of_next(), second = length_of_next();
    ASSERT_NE(first, second) << "it tries out all lengths at first";
    b.post<FakeProposer>(b.proposer, kFakeProposer, "proposer");
    b.swaps.at_boundary(false);
    EXPECT_EQ(length_of_next(), first) << "and begins again";
}

TEST(ProposerSwaps, PassStepsInWhichThereWasSomethingToDraft) {
    Bench b;
    FakeProposer& next = b.post<FakeProposer>(b.proposer, kFakeProposer, "proposer");
    size_t asked = 0;
    next.proposed = [&](ProposeBatch&) { asked += 1; };
    b.swaps.at_boundary(false);
    EXPECT_FALSE(b.swaps.step_may_be_redone()) << "without drafts a step goes on as well";
    b.context.step = 2;
    b.swaps.end_step({true, true});
    EXPECT_TRUE(b.proposer.slot().previous()) << "nothing was drafted";
    b.decode(4);
    b.context.step = 3;
    b.proposals.propose();
    ASSERT_EQ(asked, 1u);
    b.swaps.end_step({true, true});
    EXPECT_FALSE(b.proposer.slot().previous());
    EXPECT_EQ(b.report().swaps.back().state, host::SwapState::kCommitted);
}

TEST(KvPolicySwaps, WithoutOneThereIsNoRecordForOne) {
    Bench b;
    EXPECT_TRUE(b.kv_policy.takes_swaps());
    KvPolicyPort empty({}, b.kv, b.clock, b.context, b.journal);
    const KvPolicySwaps part(empty, b.sequences, b.context);
    EXPECT_THAT(part.takes_swaps().error(), HasSubstr("the engine was started without one"));
}

TEST(KvPolicySwaps, ANewOneIsGivenWhatIsCached) {
    Bench b;
    ASSERT_TRUE(b.policy.adopt());
    b.cache(0);
    b.run(4, 4); // so that it is warmed up beside steps
    FakeEvictions& next = b.post<FakeEvictions>(b.kv_policy, kFakeEvictions, "kv_policy");
    b.swaps.at_boundary(false);
    EXPECT_EQ(next.pages.size(), 2u);
    ASSERT_TRUE(b.kv_policy.slot().previous());
    b.cache(100);
    b.swaps.end_step({true, true});
    EXPECT_EQ(next.pages.size(), 4u) << "and what has changed, in each step of its probation";
    EXPECT_FALSE(b.kv_policy.slot().previous());
}

TEST(KvPolicySwaps, OneThatRefusesWhatIsCachedDoesNotStay) {
    for (const bool beside_steps : {false, true}) {
        Bench b;
        ASSERT_TRUE(b.policy.adopt());
        b.cache(0);
        if (beside_steps) b.run(4, 4);
        const host::Component* const first = &b.kv_policy.slot().current();
        b.post<FakeEvictions>(b.kv_policy, kFakeEvictions, "kv_policy").fails = true;
        b.swaps.at_boundary(false);
        EXPECT_EQ(&b.kv_policy.slot().current(), first);
        EXPECT_TRUE(b.report().swaps.back().settled());
        EXPECT_EQ(b.report().swaps.back().phase, "adopt");
        EXPECT_EQ(b.report().swaps.back().state,
                  beside_steps ? host::SwapState::kRefused : host::SwapState::kRolledBack);
    }
}

TEST(SchedulerSwaps, TheTimeOfAStepIsThatOfItsPlan) {
    Bench b;
    SchedulerSwaps part(b.scheduler, b.context);
    b.report().calls.plan_ns = 7;
    EXPECT_EQ(part.call_of({true, false}).ns, 7u);
    EXPECT_TRUE(part.call_of({true, false}).made);
    EXPECT_FALSE(part.call_of({false, true}).made);
    EXPECT_FALSE(part.computes());
}

}  // namespace
}  // namespace patchbay::engine::testing::swap_ports_test
