// Swaps of an engine of two ranks: what only rank 0 has is exchanged as ever; attention and weights are exchanged on
// both before the same step, or on none.
#include <gmock/gmock.h>

#include "parallel/world.hpp"
#include "paths.hpp"
#include "swap/checkpoint_fixture.hpp"

namespace patchbay::engine::rank_swap_test {
namespace {

using namespace testing;
using host::SwapState;
using ::testing::HasSubstr;
using ::testing::StartsWith;

config::EngineConfig two_ranks(const std::string& path = demo_path()) {
    config::EngineConfig c = demo_engine(path);
    c.model.dtype = config::DType::kF32;
    c.engine.tensor_parallel_size = 2;
    c.engine.num_blocks = 64;
    c.engine.threads = 1;
    return c;
}

class RankSwap : public ::testing::Test {
  protected:
    const Texts& undisturbed() {
        if (texts_.empty()) texts_ = texts_of(two_ranks());
        return texts_;
    }
    Texts texts_of(const config::EngineConfig& c) { // without a swap; the ranks are free again
        Swapping s(c, nullptr, &world);
        s.add_requests();
        return s.run();
    }
    static config::PluginChoice faulty(const char* fault, int rank) { // on that rank only
        return {"faulty", {{"fault", fault}, {"seqs", "3"}, {"rank", std::to_string(rank)}}};
    }

    parallel::World world{std::string(kBuildDir) + "/bin/patchbay"};

  private:
    Texts texts_;
};

void expect_all_well(const Swapping& s, size_t committed) {
    size_t count = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
        count += r.state == SwapState::kCommitted;
    }
    EXPECT_GE(count, committed);
}

TEST_F(RankSwap, OfEverySlotAtEveryBoundaryLeavesEveryTextAsItIs) {
    config::EngineConfig c = two_ranks();
    c.swap.probation_steps = 1;
    c.sampler.plugin = "standard";
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.kv_policy = config::PluginChoice{"lru", {}};
    c.engine.num_speculative_tokens = 3;
    const Texts expected = texts_of(c);
    Swapping s(c, nullptr, &world);
    s.add_requests();
    size_t n = 0;
    EXPECT_EQ(s.run([&] {
        const host::Registry& registry = n++ % 2 == 0 ? other_builds() : swap_registry();
        s.swap(SwapSlot::kScheduler, {n % 3 == 0 ? "sjf" : "fcfs", {}}, registry);
        s.swap(SwapSlot::kSampler, {"standard", {}}, registry);
        s.swap(SwapSlot::kProposer, {n % 4 < 2 ? "ngram" : "suffix", {}}, registry);
        s.swap(SwapSlot::kKvPolicy, {n % 4 < 2 ? "lru" : "lfu", {}}, registry);
        s.swap(SwapSlot::kAttention, {"paged", {}}, registry);
        EXPECT_TRUE(s.engine->audit());
    }),
              expected);
    expect_all_well(s, 4 * s.steps.size());
}

TEST_F(RankSwap, ToAttentionWithOtherPagesComputesEverySequenceAnew) {
    Swapping s(two_ranks(), nullptr, &world);
    s.add_requests();
    for (int i = 0; i < 6; ++i) s.step();
    const auto there = s.swap(SwapSlot::kAttention, {"reference", {}});
    for (int i = 0; i < 8; ++i) s.step();
    EXPECT_EQ(name_in(*s.engine, "attention"), "reference");
    const auto back = s.swap(SwapSlot::kAttention, {"paged", {}});
    EXPECT_EQ(s.run(), undisturbed());
    expect_all_well(s, 2);
}

TEST_F(RankSwap, IsRefusedWhereAnotherRankCannotMakeItsCandidate) {
    Swapping s(two_ranks(), nullptr, &world);
    s.add_requests();
    for (int i = 0; i < 4; ++i) s.step();
    const auto swap = s.swap(SwapSlot::kAttention, faulty("throws_in_create", 1));
    EXPECT_THAT(swap->record().text(), StartsWith("swap attention paged→faulty: refused in phase create: rank 1 ("));
    EXPECT_THAT(swap->record().text(), HasSubstr("fails on purpose"));
    EXPECT_EQ(swap->record().code, StatusCode::kFailed) << "as on a rank alone";
    EXPECT_EQ(s.run(), undisturbed());
}

// Of four ranks the first and the last can use it, and go back.
TEST_F(RankSwap, LeavesAllWithTheOldOneWhereAnotherRankCannotUseIt) {
    config::EngineConfig c = two_ranks();
    c.engine.tensor_parallel_size = 4;
    const Texts expected = texts_of(c);
    Swapping s(c, nullptr, &world);
    s.add_requests();
    for (int i = 0; i < 4; ++i) s.step();
    const auto swap = s.swap(SwapSlot::kAttention, faulty("throws_in_bind", 2));
    s.step();
    EXPECT_THAT(swap->record().text(), StartsWith("swap attention paged→faulty: rolled back in phase bind: rank 2 ("));
    EXPECT_THAT(swap->record().text(), HasSubstr("fails on purpose"));
    EXPECT_EQ(name_in(*s.engine, "attention"), "paged");
    for (int i = 0; i < 4; ++i) s.step();
    const auto next = s.swap(SwapSlot::kAttention, {"paged", {}}, other_builds()); // all are ready for another
    EXPECT_EQ(s.run([&] { EXPECT_TRUE(s.engine->audit()); }), expected);
    EXPECT_EQ(next->record().state, SwapState::kCommitted) << next->record().text();
}

TEST_F(RankSwap, IsRolledBackOnAllRanks) {
    config::EngineConfig c = two_ranks();
    c.swap = {.probation_steps = 6, .max_call_ms = 1};
    TickingClock clock(50'000);
    Swapping s(c, &clock, &world);
    s.add_requests();
    for (int i = 0; i < 3; ++i) s.step();
    const auto swap = s.swap(SwapSlot::kAttention, {"faulty", {{"fault", "slow"}, {"at", "2"}, {"seqs", "3"}}});
    EXPECT_EQ(s.run([&] { EXPECT_TRUE(s.engine->audit()); }), undisturbed());
    EXPECT_THAT(swap->record().text(), HasSubstr("rolled back in phase time"));
}

TEST_F(RankSwap, OfWeightsGivesEachTokenOfOneCheckpointOrTheOther) {
    const OtherCheckpoint other;
    Swapping s(two_ranks(), nullptr, &world);
    auto asked = ask(s, 1, 4);
    for (int i = 0; i < 12; ++i) s.step();
    const Texts then = s.texts;
    ASSERT_GT(then.size(), 1u);
    s.swap(SwapSlot::kModel, {other.path(), {}});
    s.step();
    const auto later = ask(s, 1, 1); // a prompt that the first model has cached
    asked.insert(later.begin(), later.end());
    s.run([&] { EXPECT_TRUE(s.engine->audit()); });
    expect_all_well(s, 1);
    const Texts texts = s.texts;
    s.engine.reset();
    EXPECT_GT(expect_continued(texts, then, asked, two_ranks(), two_ranks(other.path()), &world), 0u);
}

TEST_F(RankSwap, OfWeightsThereAndBackManyTimesLosesNoRequest) {
    const OtherCheckpoint other;
    Swapping s(two_ranks(), nullptr, &world);
    ask(s, 1, 4);
    size_t n = 0;
    s.run([&] {
        if (n < 6) s.swap(SwapSlot::kModel, {n % 2 == 0 ? other.path() : demo_path(), {}});
        n += 1;
    });
    EXPECT_EQ(s.endings.size(), 4u);
    expect_all_well(s, 5);
}

host::Registry with_the_model_in(const std::string& folder) { // which comes first, and so serves the demo models
    const auto all = host::Registry::open({std::string(kBuildDir) + "/tests/" + folder});
    if (!all) throw std::runtime_error(all.error());
    return *all;
}

TEST_F(RankSwap, OfWeightsIsRefusedWhereAnotherRankCannotLoadThem) {
    Swapping s(two_ranks(), nullptr, &world);
    s.add_requests();
    for (int i = 0; i < 4; ++i) s.step();
    const auto swap = s.swap(SwapSlot::kModel, {demo_path(), {}}, with_the_model_in("swap_faulty_ranks"));
    EXPECT_THAT(swap->record().text(), HasSubstr("refused in phase load: rank 1 ("));
    EXPECT_THAT(swap->record().text(), HasSubstr("fails on purpose"));
    EXPECT_EQ(s.run(), undisturbed());
}

// ---- faults in the middle of a step ----

// The step is computed anew by the predecessor on all ranks, and the engine goes on: with one fault more if need be.
void expect_redone(const Swapping& s, const host::SwapRecord& swap, const std::string& rank) {
    EXPECT_THAT(swap.text(), HasSubstr("rolled back in phase run: " + rank));
    EXPECT_THAT(swap.text(), HasSubstr("fails on purpose"));
    EXPECT_TRUE(s.engine->audit());
}

config::EngineConfig with_probation(uint32_t steps) {
    config::EngineConfig c = two_ranks();
    c.swap.probation_steps = steps;
    return c;
}

config::PluginChoice faulty_plan(int rank, int at) {
    return {"faulty", {{"fault", "throws_in_plan"}, {"seqs", "3"}, {"rank", std::to_string(rank)},
                       {"at", std::to_string(at)}}};
}

TEST_F(RankSwap, WhoseAttentionFailsInAStepOnOneRankIsRolledBackOnAll) {
    for (const int at : {1, 2, 5}) {
        Swapping s(with_probation(8), nullptr, &world);
        s.add_requests();
        for (int i = 0; i < 3; ++i) s.step();
        const auto swap = s.swap(SwapSlot::kAttention, faulty_plan(1, at));
        EXPECT_EQ(s.run(), undisturbed()) << "in the plan " << at;
        expect_redone(s, swap->record(), "rank 1 (");
        EXPECT_EQ(name_in(*s.engine, "attention"), "paged");
    }
}

TEST_F(RankSwap, WhoseAttentionFailsInAStepOnEveryRankIsRolledBackOnAll) {
    Swapping s(with_probation(8), nullptr, &world);
    s.add_requests();
    for (int i = 0; i < 3; ++i) s.step();
    const auto swap = s.swap(SwapSlot::kAttention, faulty_plan(0, 2));
    EXPECT_EQ(s.run(), undisturbed());
    expect_redone(s, swap->record(), "");
}

TEST_F(RankSwap, ThatFailsInAStepAgainAndAgainIsRolledBackEachTime) {
    config::EngineConfig c = two_ranks();
    c.engine.tensor_parallel_size = 4;
    const Texts expected = texts_of(c);
    Swapping s(c, nullptr, &world);
    s.add_requests();
    for (int rank = 1; rank < 4; ++rank) {
        s.step();
        const auto swap = s.swap(SwapSlot::kAttention, faulty_plan(rank, 1));
        s.step();
        expect_redone(s, swap->record(), "rank " + std::to_string(rank) + " (");
    }
    const auto next = s.swap(SwapSlot::kAttention, {"paged", {}}, other_builds()); // all are ready for another
    EXPECT_EQ(s.run(), expected);
    EXPECT_EQ(next->record().state, SwapState::kCommitted) << next->record().text();
}

// While the others wait for what it would exchange, and after they have got it.
TEST_F(RankSwap, WhoseModelFailsInAPassOnOneRankIsRolledBackOnAll) {
    for (const char* folder : {"swap_faulty_pass", "swap_faulty_late_pass"}) {
        const host::Registry registry = with_the_model_in(folder);
        Swapping s(with_probation(8), nullptr, &world);
        s.add_requests();
        for (int i = 0; i < 4; ++i) s.step();
        const auto swap = s.swap(SwapSlot::kModel, {demo_path(), {}}, registry);
        EXPECT_EQ(s.run(), undisturbed()) << folder;
        expect_redone(s, swap->record(), "rank 1 (");
        EXPECT_EQ(swap->record().end_step, swap->record().step + 2) << "the third pass fails: no step later";
    }
}

// A request's text is of no interest here: it fails with its engine.
std::string fault_of(Swapping& s, const config::PluginChoice& attention, std::shared_ptr<host::Swap>& swap) {
    Request r;
    r.prompt = random_prompt(1, 9);
    r.sampling = greedy(20);
    EXPECT_TRUE(s.engine->add_request(std::move(r)));
    for (int i = 0; i < 3; ++i) s.step();
    swap = s.swap(SwapSlot::kAttention, attention);
    while (s.engine->has_unfinished())
        if (const auto done = s.engine->step(); !done) return done.error();
    return "";
}

TEST_F(RankSwap, ThatEndsARankOnItsProbationEndsTheEngineWhichNamesTheRank) {
    Swapping s(with_probation(8), nullptr, &world);
    std::shared_ptr<host::Swap> swap;
    const config::PluginChoice exits{"faulty", {{"fault", "exits"}, {"seqs", "3"}, {"rank", "1"}, {"at", "2"}}};
    const std::string fault = fault_of(s, exits, swap);
    EXPECT_THAT(fault, StartsWith("rank 1 ("));
    EXPECT_THAT(fault, HasSubstr("exited with code 3"));
    EXPECT_EQ(swap->record().state, SwapState::kRolledBack) << "and it destroys the component";
}

TEST_F(RankSwap, ThatFailsInAStepAfterItsProbationEndsTheEngineWhichNamesTheRank) {
    Swapping s(with_probation(2), nullptr, &world);
    std::shared_ptr<host::Swap> swap;
    const std::string fault = fault_of(s, faulty_plan(1, 6), swap);
    EXPECT_EQ(swap->record().state, SwapState::kCommitted) << swap->record().text();
    EXPECT_THAT(fault, StartsWith("rank 1 ("));
    EXPECT_THAT(fault, HasSubstr("fails on purpose"));
}

}  // namespace
}  // namespace patchbay::engine::rank_swap_test
