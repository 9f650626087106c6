// The model that a proposer asks for while the engine is made.
#include "engine/speculation/draft_load.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/built_plugins.hpp"

namespace patchbay::engine::testing::draft_load_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

pb_str str(std::string_view s) { return {s.data(), s.size()}; }

struct Bench {
    explicit Bench(bool computes = true) : part({config, built_plugins(), {}, pool, computes, target}) {
        config.device.plugin = "sim";
    }
    Result<> load(std::optional<double> acceptance = std::nullopt) {
        const pb_setting settings[] = {{str("path"), str(path)}};
        pb_runner_load what = sized<pb_runner_load>();
        what.settings = settings;
        what.setting_count = 1;
        what.has_simulated_acceptance = acceptance.has_value();
        what.simulated_acceptance = acceptance.value_or(0);
        return part.load(what, facts);
    }
    std::string path = kSourceDir + std::string("/models/demo-draft");
    config::EngineConfig config;
    ThreadPool pool{1};
    weights::FlatConfig target;
    pb_runner_facts facts = sized<pb_runner_facts>();
    DraftLoad part;
};

TEST(DraftLoad, OpensTheModelAndSaysWhatItIs) {
    Bench b;
    EXPECT_EQ(b.part.draft(), nullptr);
    const auto done = b.load();
    ASSERT_TRUE(done) << done.error();
    ASSERT_NE(b.part.draft(), nullptr);
    EXPECT_EQ(b.facts.model, kDraftModel);
    EXPECT_EQ(b.facts.vocab_size, b.part.draft()->facts.vocab_size);
    EXPECT_GT(b.facts.layer_count, 0u);
    EXPECT_FALSE(b.part.form().is_head());
    EXPECT_TRUE(b.part.form().keeps_kv());
    EXPECT_NE(b.part.identity(), "");
    EXPECT_NE(b.part.identity(), "dummy") << "it has weights";
    EXPECT_THAT(b.part.settings(), UnorderedElementsAre(Pair("path", b.path)));
    b.part.give();
    EXPECT_EQ(b.part.draft(), nullptr);
}

TEST(DraftLoad, OneAtMostAndOnlyWhileTheEngineIsMade) {
    Bench b;
    ASSERT_TRUE(b.load());
    EXPECT_THAT(b.load().error(), HasSubstr("more than one"));
    Bench late;
    late.part.end();
    EXPECT_THAT(late.load().error(), HasSubstr("in create() only"));
    EXPECT_EQ(late.part.draft(), nullptr);
}

TEST(DraftLoad, RefusesWhatTheEngineCannotRun) {
    Bench ranks;
    ranks.config.engine.tensor_parallel_size = 2;
    EXPECT_THAT(ranks.load().error(), HasSubstr("tensor_parallel_size is 2"));
    Bench absent;
    absent.path = "/nowhere/model";
    EXPECT_THAT(absent.load().error(), HasSubstr("/nowhere/model"));
}

TEST(DraftLoad, WhereNothingIsComputedItHasToBeSaidWhichDraftsAreAccepted) {
    for (const std::optional<double> acceptance : {std::optional<double>(), {-0.1}, {1.1}}) {
        Bench b(false);
        EXPECT_THAT(b.load(acceptance).error(), HasSubstr("simulated_acceptance"));
    }
    Bench said(false);
    const auto done = said.load(0.25);
    ASSERT_TRUE(done) << done.error();
    EXPECT_EQ(said.part.form().acceptance, 0.25);
    EXPECT_EQ(said.part.identity(), "dummy") << "its weights are not read";
    Bench by_rates(false);
    by_rates.config.speculative.rejection_sample_method = config::Verification::kSynthetic;
    EXPECT_TRUE(by_rates.load());
    Bench tree(false);
    tree.config.speculative.max_paths = 2;
    EXPECT_THAT(tree.load(0.25).error(), HasSubstr("max_paths is 2"));
}

TEST(DraftLoad, DrawsDraftsThatAreJudgedByChanceFromANoiseOfTheirOwn) {
    Bench drawn, compared;
    drawn.config.speculative.rejection_sample_method = config::Verification::kRejection;
    ASSERT_TRUE(drawn.load());
    ASSERT_TRUE(compared.load());
    EXPECT_NE(drawn.part.form().noise, compared.part.form().noise);
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_load_test
