// Who is drafted for, how far, and what becomes of what a proposer gives: right, wrong, or nothing.
#include "engine/speculation/proposals.hpp"

#include <gmock/gmock.h>

#include "engine/loop/batch_builder.hpp"
#include "engine/loop/page_copies.hpp"
#include "engine/speculation/draft_model_offer.hpp"
#include "engine/speculation/draft_verification.hpp"
#include "unit/engine_parts/neighbours.hpp"
#include "unit/host/slot_steps.hpp"

namespace patchbay::engine::testing::proposals_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

World drafting(uint32_t length = 3) {
    World w;
    w.settings.num_speculative_tokens = length;
    return w;
}

struct Bench : RowNeighbours {
    explicit Bench(World w = drafting(), config::SpeculationSettings s = {})
        : RowNeighbours(std::move(w)), speculation(std::move(s)) {}

    static host::Proposer typed(std::unique_ptr<host::Component> c) {
        const auto* const table = static_cast<const pb_proposer*>(c->type().vtable);
        return {std::move(c), table};
    }
    void give(std::vector<TokenId> chain) {
        proposer.proposed = [chain](ProposeBatch& b) {
            for (uint32_t i = 0; i < b.size(); ++i) b.propose(i, chain);
        };
    }
    static std::vector<TokenId> drafts_of(const Sequence& s) {
        return {s.tokens.end() - static_cast<ptrdiff_t>(s.drafts), s.tokens.end()};
    }

    config::SpeculationSettings speculation;
    Aborts aborts;
    DraftVerification verification{speculation, kVocab, drafts};
    BatchBuilder batches{{form, kv, rows, constraints, prompt_logprobs, pooling, branches, draft_kv, kVocab, context}};
    PageCopies copies{batches, executor, kv};
    Played<FakeProposer> played = play<FakeProposer>(kFakeProposer);
    FakeProposer& proposer = played.policy;
    Proposals part{{settings, speculation, kVocab, kMaxModelLen, sequences, kv, beams, constraints, verification,
                    drafts, draft_kv, aborts, copies, clock, context, journal},
                   typed(std::move(played.component)), nullptr};
};

TEST(Proposals, DraftsStandAfterTheConfirmedTokens) {
    Bench b;
    Sequence& s = b.decode(4);
    b.give({50, 51, 52, 53});
    b.part.propose();
    EXPECT_THAT(Bench::drafts_of(s), ElementsAre(50, 51, 52)) << "num_speculative_tokens at most";
    EXPECT_EQ(s.confirmed(), 5u);
    EXPECT_EQ(b.report().drafts.length, 3u);
}

TEST(Proposals, AreMadeForThoseOnlyThatCanTakeThem) {
    Bench b;
    SamplingParams last, mirostat;
    last.max_tokens = 2; // one is made, and the step makes the other
    mirostat.mirostat = 2;
    Sequence &decodes = b.decode(4), &has_drafts = b.decode(4, {9}), &aborted = b.decode(4);
    b.decode(4, {}, last);
    b.decode(4, {}, mirostat);
    b.run(8, 3); // its prompt is unfinished
    b.aborts.add(aborted.id);
    std::vector<std::pair<uint64_t, uint32_t>> shown;
    b.proposer.proposed = [&](ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) shown.emplace_back(batch.row(i).id, batch.row(i).max_drafts);
    };
    b.part.propose();
    EXPECT_THAT(shown, ElementsAre(Pair(decodes.id, 3)));
    EXPECT_EQ(has_drafts.drafts, 1u) << "those that no step has verified still stand";
}

TEST(Proposals, GoNoFurtherThanTheOutputMay) {
    Bench b(drafting(5));
    SamplingParams four;
    four.max_tokens = 4;
    Sequence& by_tokens = b.decode(4, {}, four);
    b.give({50, 51, 52, 53, 54});
    b.part.propose();
    EXPECT_EQ(by_tokens.drafts, 2u) << "of the three that are to come the step makes one itself";
}

TEST(Proposals, GoNoFurtherThanTheModel) {
    World w = drafting(5);
    w.blocks = 300;
    Bench b(std::move(w));
    SamplingParams p;
    p.max_tokens = 1000;
    Sequence& s = b.decode(Bench::kMaxModelLen - 4, {}, p);
    b.give({50, 51, 52, 53, 54});
    b.part.propose();
    EXPECT_EQ(s.drafts, 2u) << "three places are left, and the step fills one itself";
}

TEST(Proposals, EndAtATokenThatIsNone) {
    for (const TokenId none : {TokenId{-1}, static_cast<TokenId>(Bench::kVocab)}) {
        Bench b;
        Sequence& s = b.decode(4);
        b.give({50, none, 52});
        b.part.propose();
        EXPECT_THAT(Bench::drafts_of(s), ElementsAre(50));
    }
}

TEST(Proposals, ThatAreMoreThanARowMayHaveAreCut) {
    Bench b;
    SamplingParams p;
    p.max_tokens = 3;
    Sequence& s = b.decode(4, {}, p);
    b.proposer.proposed = [](ProposeBatch& batch) {
        for (uint32_t k = 0; k < 3; ++k) batch.raw.drafts[k] = 50;
        batch.raw.counts[0] = 1000;
    };
    b.part.propose();
    EXPECT_EQ(s.drafts, 1u);
}

TEST(Proposals, OfAProposerThatFailsAreNoneAndItIsCounted) {
    Bench b;
    Sequence& s = b.decode(4);
    b.proposer.proposed = [](ProposeBatch& batch) {
        batch.propose(0, std::vector<int32_t>{50});
        throw Error(PB_FAILED, "out of ideas");
    };
    b.part.propose();
    EXPECT_EQ(s.drafts, 0u);
    EXPECT_EQ(b.report().calls.proposer_faults, 1u);
    EXPECT_EQ(b.report().calls.proposer_breaches, 0u);
    b.give({50});
    b.part.propose();
    EXPECT_EQ(s.drafts, 1u) << "the next step goes on with it";
}

TEST(Proposals, OfATreeAreItsPathsTheFirstOneAsDrafts) {
    config::SpeculationSettings paths;
    paths.max_paths = 3;
    Bench b(drafting(), paths);
    Sequence& s = b.decode(4);
    b.proposer.proposed = [](ProposeBatch& batch) {
        batch.add_path(0, std::vector<int32_t>{50, 51, 52});
        batch.add_path(0, std::vector<int32_t>{50, 61});
        batch.add_path(0, std::vector<int32_t>{70});
        batch.add_path(0, std::vector<int32_t>{80});
    };
    b.part.propose();
    EXPECT_THAT(Bench::drafts_of(s), ElementsAre(50, 51, 52));
    const auto branches = b.drafts.branches(s.id, s.drafts);
    EXPECT_THAT(std::vector(branches.begin(), branches.end()), ElementsAre(DraftPath{50, 61}, DraftPath{70}));
}

TEST(Proposals, ThatHangOnNoDraftAreCutAndCounted) {
    config::SpeculationSettings paths;
    paths.max_paths = 2;
    Bench b(drafting(), paths);
    Sequence& s = b.decode(4);
    b.proposer.proposed = [](ProposeBatch& batch) {
        const int32_t drafts[] = {50, 51, 52}, parents[] = {-1, 7, 0};
        std::copy_n(drafts, 3, batch.raw.drafts);
        std::copy_n(parents, 3, batch.raw.parents);
        batch.raw.counts[0] = 3;
    };
    b.part.propose();
    EXPECT_THAT(Bench::drafts_of(s), ElementsAre(50));
    EXPECT_EQ(b.report().calls.proposer_faults, 1u);
    EXPECT_EQ(b.report().calls.proposer_breaches, 1u);
}

class Allows final : public RowConstraint { // so many drafts
  public:
    explicit Allows(uint32_t count) : count_(count) {}
    bool applies(const Sequence&) const override { return true; }
    void mask(const PathRows&, MaskWords&, Unsatisfiable&) override {}
    uint32_t count_allowed(const Sequence&, std::span<const TokenId> drafts) override {
        return std::min(count_, static_cast<uint32_t>(drafts.size()));
    }
    void inherit(const Sequence&, const Sequence&) override {}
    void erase(const Sequence&) override {}

  private:
    uint32_t count_;
};

TEST(Proposals, ThatAGrammarDoesNotAllowAreCut) {
    Bench b;
    Allows one(1);
    b.constraints = Constraints({&one});
    Sequence& s = b.decode(4);
    b.give({50, 51, 52});
    b.part.propose();
    EXPECT_THAT(Bench::drafts_of(s), ElementsAre(50));
    EXPECT_EQ(b.report().grammars.cut_drafts, 2u);
}

config::SpeculationSettings by_rejection() {
    config::SpeculationSettings s;
    s.rejection_sample_method = config::Verification::kRejection;
    return s;
}

TEST(Proposals, ThatWereDrawnAreKeptWithWhatTheyWereDrawnFrom) {
    Bench b(drafting(), by_rejection());
    Sequence& s = b.decode(4);
    b.proposer.proposed = [](ProposeBatch& batch) {
        ASSERT_TRUE(batch.wants_probabilities());
        batch.propose(0, std::vector<int32_t>{50, 51, 52});
        const auto first = batch.drawn_from(0, 0), last = batch.drawn_from(0, 2);
        std::ranges::fill(first, 0.0f);
        std::ranges::fill(last, 0.0f);
        first[50] = 0.75f;
        first[60] = 0.25f;
        last[60] = 1; // from which 52 cannot have been drawn
    };
    b.part.propose();
    const DraftRecord& r = b.drafts.of(s.id);
    EXPECT_THAT(r.drawn, ElementsAre(1, 0, 0));
    ASSERT_EQ(r.probs.size(), size_t{3} * Bench::kVocab) << "a row for each draft, wherever it comes from";
    EXPECT_EQ(r.probs[50], 0.75f);
    EXPECT_EQ(r.probs[size_t{2} * Bench::kVocab + 60], 0);
}

TEST(Proposals, ThatWereDrawnAreVerifiedThoughAGrammarRefusesThem) {
    Bench b(drafting(), by_rejection());
    Allows one(1);
    b.constraints = Constraints({&one});
    Sequence& s = b.decode(4);
    b.proposer.proposed = [](ProposeBatch& batch) {
        batch.propose(0, std::vector<int32_t>{50, 51, 52});
        for (uint32_t k = 0; k < 3; ++k) std::ranges::fill(batch.drawn_from(0, k), 1e-4f);
    };
    b.part.propose();
    EXPECT_THAT(Bench::drafts_of(s), ElementsAre(50, 51)) << "to leave it out would make others more likely";
    EXPECT_EQ(b.report().grammars.cut_drafts, 1u);
}

TEST(Proposals, TheProposerHearsOfVerdictsAndOfEnds) {
    Bench b;
    Sequence& s = b.decode(4);
    b.part.observe(s, 3, 2);
    b.part.observe(s, 0, 0); // nothing was verified
    b.part.finished(s);
    EXPECT_THAT(b.proposer.observed, ElementsAre(ElementsAre(s.id, 3, 2)));
    EXPECT_THAT(b.proposer.ended, ElementsAre(s.id));
}

TEST(Proposals, ADraftTreeGoesWithItsSequence) {
    Bench b;
    Sequence& s = b.decode(4, {50});
    b.drafts.of(s.id).branches = {{60}};
    b.part.finished(s);
    EXPECT_THAT(b.drafts.branches(s.id, s.drafts), IsEmpty());
}

TEST(Proposals, GiveUpWhatAWindowHasPassed) {
    World w = drafting();
    w.groups = {{kv::GroupKind::kSliding, 4}};
    Bench b(std::move(w));
    Sequence& s = b.run(12, 12);
    b.part.free_outside_window(s);
    EXPECT_EQ(b.kv.pool().used(), 1u) << "of token 12 on, the last four are seen";
    EXPECT_FALSE(b.part.lingers(s)) << "there is no draft model that would want the rest";
}

TEST(Proposals, ByAnAdaptiveLengthAreAsLongAsItChooses) {
    config::SpeculationSettings adaptive;
    adaptive.mode = config::DraftMode::kAdaptive;
    Bench b(drafting(), adaptive);
    std::vector<uint32_t> lengths, drafted;
    for (int i = 0; i < 4; ++i) {
        Sequence& s = b.decode(4);
        b.give({50, 51, 52});
        b.part.propose();
        lengths.push_back(b.report().drafts.length);
        drafted.push_back(s.drafts);
        b.kv.tables().release(s.kv.table);
        b.admission.leave(s);
        b.sequences.remove(s.id);
    }
    EXPECT_THAT(lengths, ElementsAre(3, 1, 3, 2)) << "its first choices go through all lengths";
    EXPECT_EQ(drafted, lengths);
}

TEST(Proposals, OfOneOnProbationThatFailsAreNoneAndItsPredecessorIsBack) {
    Bench b;
    b.plugins = {{.kind = "proposer", .name = "fake", .version = {}, .sha256 = {}, .build = {}, .path = {}}};
    Sequence& s = b.decode(4);
    b.give({50, 51});
    Played<FakeProposer> next = play<FakeProposer>(kFakeProposer);
    next.policy.proposed = [](ProposeBatch&) { throw Error(PB_FAILED, "it does not want to"); };
    const auto swap = host::testing::put_on_probation(b.part.slot(), std::move(next.component), "proposer", "next");
    ASSERT_TRUE(b.part.slot().previous());
    b.part.propose();
    EXPECT_EQ(s.drafts, 0u);
    EXPECT_EQ(b.report().calls.proposer_faults, 0u) << "it is gone";
    ASSERT_EQ(b.report().swaps.size(), 1u);
    EXPECT_EQ(b.report().swaps[0].state, host::SwapState::kRolledBack);
    b.part.propose();
    EXPECT_THAT(Bench::drafts_of(s), ElementsAre(50, 51));
}

// A proposer that does so is at fault, which the host survives.
TEST(DraftModelOffer, RefusesToRunAModelThatWasNotLoaded) {
    DraftModelOffer offer(nullptr);
    pb_runner_batch batch{};
    pb_str why{};
    const pb_runner& its = offer.service();
    EXPECT_EQ(its.forward(its.ctx, &batch, &why), PB_INVALID);
    EXPECT_EQ(std::string(why.data, why.size), "no model was loaded that could be run");
}

TEST(Proposals, WithoutAProposerThereIsNothingToDo) {
    Bench b;
    Proposals none({b.settings, b.speculation, Bench::kVocab, Bench::kMaxModelLen, b.sequences, b.kv, b.beams,
                    b.constraints, b.verification, b.drafts, b.draft_kv, b.aborts, b.copies, b.clock, b.context,
                    b.journal},
                   {}, nullptr);
    Sequence& s = b.decode(4);
    EXPECT_FALSE(none.any());
    EXPECT_FALSE(none.slot().filled());
    none.observe(s, 1, 1);
    none.finished(s);
    EXPECT_THAT(b.proposer.observed, IsEmpty());
}

}  // namespace
}  // namespace patchbay::engine::testing::proposals_test
