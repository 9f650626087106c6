// The weights of a running engine are exchanged: every request finishes, and each token comes from one checkpoint or
// the other, with all that is before it computed by the same one.
#include <gmock/gmock.h>

#include "paths.hpp"
#include "service/engine_thread.hpp"
#include "swap/checkpoint_fixture.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::model_swap_test {
namespace {

using namespace testing;
using host::SwapState;
using ::testing::HasSubstr;

constexpr SwapSlot kModel = SwapSlot::kModel;
TEST(ModelSwap, EveryTokenIsOfOneCheckpointOrTheOther) {
    const OtherCheckpoint other;
    Swapping s(demo_engine(demo_path()));
    const std::string before = s.engine->facts().model.identity;
    auto asked = ask(s, 1, 5);
    for (int i = 0; i < 12; ++i) s.step();
    const Texts then = s.texts;
    ASSERT_GT(then.size(), 1u);
    const auto swap = s.swap(kModel, {other.path(), {}});
    s.step();
    EXPECT_TRUE(s.engine->audit());
    const auto later = ask(s, 1, 2); // prompts that the first model has cached
    asked.insert(later.begin(), later.end());
    s.run([&] { EXPECT_TRUE(s.engine->audit()); });
    const host::SwapRecord r = swap->record();
    EXPECT_EQ(r.state, SwapState::kCommitted) << r.text();
    EXPECT_EQ(r.from.name, demo_path());
    EXPECT_EQ(r.to.name, other.path());
    EXPECT_EQ(r.from.name_in_library(), "llama");
    EXPECT_EQ(r.to.name_in_library(), "llama");
    EXPECT_NE(s.engine->facts().model.identity, before);
    const size_t changed = expect_continued(s.texts, then, asked, demo_engine(demo_path()), demo_engine(other.path()));
    EXPECT_GT(changed, 0u) << "the two checkpoints say the same";
}

TEST(ModelSwap, ThereAndBackAgainManyTimesLosesNoRequest) {
    const OtherCheckpoint other;
    Swapping s(demo_engine(demo_path()));
    ask(s, 1, 5);
    size_t n = 0;
    s.run([&] {
        if (n < 8) s.swap(kModel, {n % 2 == 0 ? other.path() : demo_path(), {}});
        n += 1;
    });
    EXPECT_EQ(s.endings.size(), 5u);
    for (const auto& [id, count] : s.endings) EXPECT_EQ(count, 1u);
    size_t committed = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
        committed += r.state == SwapState::kCommitted;
    }
    EXPECT_EQ(committed, 8u);
}

// A router that follows KV events sends prompts where their prefix is: the model that computed a block is in its name.
TEST(ModelSwap, NamesBlocksAsAnEngineDoesThatWasMadeWithTheModel) {
    const OtherCheckpoint other;
    const auto blocks = [](Swapping& s) { return first_blocks(s, [&s] { ask(s, 1, 3); }); };
    config::EngineConfig c = demo_engine(demo_path());
    c.engine.max_num_seqs = 1; // the others wait, and what the cache has of them is watched
    Swapping first(c), made_with_other(demo_engine(other.path()));
    const BlockKeys of_first = blocks(first), of_other = blocks(made_with_other);
    ASSERT_FALSE(of_first.empty());
    EXPECT_NE(of_first, of_other);
    ask(first, 1, 3);
    first.step();
    const auto swap = first.swap(kModel, {other.path(), {}});
    first.run();
    ASSERT_EQ(swap->record().state, SwapState::kCommitted) << swap->record().text();
    ASSERT_TRUE(first.engine->reset_prefix_cache());
    EXPECT_EQ(blocks(first), of_other);
    EXPECT_EQ(first.engine->facts().kv_identity(), made_with_other.engine->facts().kv_identity());
}

TEST(ModelSwap, ThatIsRolledBackNamesBlocksAsBefore) {
    const auto blocks = [](Swapping& s) { return first_blocks(s, [&s] { ask(s, 1, 3); }); };
    Swapping s(demo_engine(demo_path()));
    const BlockKeys before = blocks(s);
    ask(s, 1, 3);
    s.step();
    const auto swap =
        s.engine->control().swap({kModel, {demo_path(), {}}, with_models_of("swap_faulty_models_1"), prober()});
    s.run();
    ASSERT_EQ(swap->record().state, SwapState::kRolledBack) << swap->record().text();
    ASSERT_TRUE(s.engine->reset_prefix_cache());
    EXPECT_EQ(blocks(s), before);
}

TEST(ModelSwap, IsRefusedToAModelThatKeepsOtherKv) {
    Swapping s(demo_engine(demo_path()));
    const auto swap = s.swap(kModel, {demo_path("demo-draft"), {}});
    EXPECT_THAT(swap->record().text(), HasSubstr("refused in phase load: it has a layer_count of"));
    const auto nothing = s.swap(kModel, {"/nowhere", {}});
    EXPECT_THAT(nothing->record().text(), HasSubstr("refused in phase find: there is no such folder or file"));
}

class ModelFault : public ::testing::TestWithParam<int> {};

TEST_P(ModelFault, InAnyStepOfProbationIsRolledBackAndNoRequestIsLost) {
    const host::Registry faulty = with_models_of("swap_faulty_models_" + std::to_string(GetParam()));
    for (const bool with_scheduler : {false, true}) {
        config::EngineConfig c = demo_engine(demo_path());
        c.swap.probation_steps = 6;
        Swapping whole(c);
        ask(whole, 1, 5);
        whole.run();
        Swapping s(c);
        ask(s, 1, 5);
        for (int i = 0; i < 4; ++i) s.step();
        const std::string before = s.engine->facts().model.identity;
        std::vector<SwapRequest> requests = {{kModel, {demo_path(), {}}, faulty, prober()}};
        if (with_scheduler) requests.push_back({SwapSlot::kScheduler, {"sjf", {}}, swap_registry(), prober()});
        const auto swaps = s.engine->control().swap_together(requests);
        EXPECT_EQ(s.run([&] { EXPECT_TRUE(s.engine->audit()); }), whole.texts); // of the same weights
        const host::SwapRecord r = swaps[0]->record();
        EXPECT_EQ(r.state, SwapState::kRolledBack) << r.text();
        EXPECT_EQ(r.end_step, 5u + static_cast<uint64_t>(GetParam()));
        EXPECT_THAT(r.text(), HasSubstr("rolled back in phase run: "));
        EXPECT_THAT(r.text(), HasSubstr("fails on purpose"));
        EXPECT_EQ(s.engine->facts().model.identity, before);
        if (with_scheduler) {
            EXPECT_EQ(swaps[1]->record().phase, "together");
        }
        EXPECT_EQ(name_in(*s.engine, "scheduler"), "fcfs");
    }
}
INSTANTIATE_TEST_SUITE_P(ModelSwap, ModelFault, ::testing::Values(0, 1, 2, 4));

TEST(ModelSwap, OneThatIsLateOnProbationIsGoneBeforeTheNextStep) {
    const host::Registry late = with_models_of("swap_late_models");
    config::EngineConfig c = demo_engine(demo_path());
    c.swap = {.probation_steps = 6, .max_call_ms = 20};
    Swapping whole(c);
    ask(whole, 1, 5);
    whole.run();
    RealClock clock;
    Swapping s(c, &clock);
    ask(s, 1, 5);
    for (int i = 0; i < 4; ++i) s.step();
    const auto swap = s.engine->control().swap({kModel, {demo_path(), {}}, late, prober()});
    EXPECT_EQ(s.run([&] { EXPECT_TRUE(s.engine->audit()); }), whole.texts);
    EXPECT_THAT(swap->record().text(), HasSubstr("rolled back in phase time: forward took "));
}

// Weights are prepared between its steps, also of an engine that has nothing to compute.
TEST(ModelSwap, OfAnEngineWithAThreadOfItsOwn) {
    const OtherCheckpoint other;
    RealClock clock;
    auto made = Engine::create(demo_engine(demo_path()), swap_registry(), clock);
    ASSERT_TRUE(made) << made.error();
    service::EngineThread thread(*std::move(made), {});
    const auto swap = thread.swap({kModel, {other.path(), {}}, swap_registry(), prober()});
    Request r;
    r.prompt = random_prompt(1, 20);
    r.sampling = greedy(12);
    const auto prompt = r.prompt;
    const auto stream = thread.submit(std::move(r));
    ASSERT_TRUE(stream);
    thread.drain();
    EXPECT_EQ(swap->record().state, SwapState::kCommitted) << swap->record().text();
    std::vector<TokenId> text;
    while (const auto delta = (*stream)->try_next())
        text.insert(text.end(), delta->tokens.begin(), delta->tokens.end());
    EXPECT_EQ(text, continued(demo_engine(other.path()), prompt, 12));
}

}  // namespace
}  // namespace patchbay::engine::model_swap_test
