// Swaps of an engine of two ranks: what only rank 0 has is exchanged as ever; attention and weights are exchanged on
// both before the same step, or on none.
#include <gmock/gmock.h>

#include "parallel/world.hpp"
#include "paths.hpp"
#include "swap/checkpoint_fixture.hpp"

namespace patchbay::engine {
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
        if (texts_.empty()) {
            Swapping s(two_ranks(), nullptr, &world);
            s.add_requests();
            texts_ = s.run();
        }
        return texts_;
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
    Swapping alone(c, nullptr, &world);
    alone.add_requests();
    const Texts expected = alone.run();
    alone.engine.reset(); // its ranks end
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
    EXPECT_EQ(s.run(), undisturbed());
}

// Of four ranks the first and the last can use it, and go back.
TEST_F(RankSwap, LeavesAllWithTheOldOneWhereAnotherRankCannotUseIt) {
    config::EngineConfig c = two_ranks();
    c.engine.tensor_parallel_size = 4;
    Swapping alone(c, nullptr, &world);
    alone.add_requests();
    const Texts expected = alone.run();
    alone.engine.reset(); // its ranks end
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

const host::Registry& with_a_model_that_fails_on_rank_1() { // which comes first, and so serves the demo models
    static const auto all = host::Registry::open({std::string(kBuildDir) + "/tests/swap_faulty_ranks"});
    if (!all) throw std::runtime_error(all.error());
    return *all;
}

TEST_F(RankSwap, OfWeightsIsRefusedWhereAnotherRankCannotLoadThem) {
    Swapping s(two_ranks(), nullptr, &world);
    s.add_requests();
    for (int i = 0; i < 4; ++i) s.step();
    const auto swap = s.swap(SwapSlot::kModel, {demo_path(), {}}, with_a_model_that_fails_on_rank_1());
    EXPECT_THAT(swap->record().text(), HasSubstr("refused in phase load: rank 1 ("));
    EXPECT_THAT(swap->record().text(), HasSubstr("fails on purpose"));
    EXPECT_EQ(s.run(), undisturbed());
}

}  // namespace
}  // namespace patchbay::engine
