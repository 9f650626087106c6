// The whole pipeline over an executor that a test plays: no model, no device, no pages but in the books.
#include "engine/pipeline.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/part_fixture.hpp"
#include "unit/engine_parts/built_plugins.hpp"

namespace patchbay::engine::testing::pipeline_test {
namespace {

using ::testing::ElementsAre;

struct Ended {
    std::vector<TokenId> tokens;
    FinishReason finish = FinishReason::kNone;
    std::string why;
};

class Bench {
  public:
    explicit Bench(bool overlaps) {
        config_.engine.max_num_batched_tokens = 32;
        config_.engine.max_num_seqs = 8;
        config_.engine.block_size = 4;
        executor.overlaps = overlaps;
        facts_.model.vocab_size = 1000;
        facts_.max_model_len = 200;
        form_.block_size = 4;
        auto kv = std::make_unique<kv::KvCache>(64, 4, kv::PrefixCaching::kOn, "model");
        pipeline = std::make_unique<Pipeline>(
            PipelineInputs{config_, clock_, facts_, executor, form_, nullptr, eos_, nullptr,
                           overlaps ? "" : "off"},
            std::move(kv), host::Proposer());
        const host::Services services{&pool_.service(), nullptr, nullptr};
        auto scheduler = built_plugins().scheduler("fcfs", {}, services);
        auto sampler = built_plugins().sampler("standard", {}, services);
        if (!scheduler || !sampler) throw std::runtime_error("no policies");
        const auto install = [](host::Slot& slot, std::unique_ptr<host::Component> c) {
            const host::Identity identity = host::Registry::identity(*c);
            slot.install(std::move(c), identity);
        };
        install(pipeline->scheduling.scheduler.slot(), std::move(scheduler->component));
        install(pipeline->sampling.sampler.slot(), std::move(sampler->component));
    }

    RequestId add(uint32_t prompt_tokens, uint32_t max_tokens) {
        Request r;
        r.prompt.assign(prompt_tokens, static_cast<TokenId>(prompt_tokens));
        r.sampling.max_tokens = max_tokens;
        r.on_output = [this](const RequestOutput& delta) {
            Ended& e = ended[delta.id];
            e.tokens.insert(e.tokens.end(), delta.tokens.begin(), delta.tokens.end());
            if (delta.finish != FinishReason::kNone) e.finish = delta.finish, e.why = delta.stop_reason;
        };
        auto id = pipeline->intake.add(std::move(r));
        if (!id) throw std::runtime_error(id.error());
        return *id;
    }
    void run() {
        for (int i = 0; pipeline->loop.has_unfinished(); ++i) {
            ASSERT_LT(i, 100);
            clock_.advance_ns(1000);
            const auto step = pipeline->loop.step();
            ASSERT_TRUE(step) << step.error();
            reasons.push_back(std::string(step->sync_reason));
        }
    }
    uint32_t used() const { return pipeline->cache.kv->pool().used(); }

    FakeExecutor executor;
    std::unique_ptr<Pipeline> pipeline;
    std::map<RequestId, Ended> ended;
    std::vector<std::string> reasons; // by step: why the one before it had to be back

  private:
    config::EngineConfig config_;
    VirtualClock clock_;
    ThreadPool pool_{1};
    EngineFacts facts_{};
    runner::BatchForm form_;
    std::vector<TokenId> eos_ = {2};
};

// A token is its position in the sequence.
TEST(Pipeline, GivesTheSameTokensWhateverIsInFlight) {
    for (const bool overlaps : {false, true}) {
        Bench b(overlaps);
        const RequestId long_one = b.add(50, 3), short_one = b.add(5, 4);
        b.run();
        EXPECT_THAT(b.ended[long_one].tokens, ElementsAre(50, 51, 52)) << overlaps;
        EXPECT_THAT(b.ended[short_one].tokens, ElementsAre(5, 6, 7, 8)) << overlaps;
        EXPECT_EQ(b.ended[long_one].finish, FinishReason::kLength);
        EXPECT_EQ(b.executor.max_in_flight, overlaps ? 2u : 1u);
        EXPECT_EQ(b.used(), 0u);
        for (const std::string& reason : b.reasons) EXPECT_EQ(reason, overlaps ? "" : "off");
    }
}

TEST(Pipeline, ComputesAPromptInChunksOfTheBudget) {
    Bench b(false);
    b.add(70, 1);
    b.run();
    EXPECT_THAT(b.executor.tokens_of_steps, ElementsAre(32, 32, 6));
}

TEST(Pipeline, EndsAllRequestsWhereAStepFails) {
    for (const bool overlaps : {false, true}) {
        Bench b(overlaps);
        const RequestId id = b.add(5, 9);
        ASSERT_TRUE(b.pipeline->loop.step());
        ASSERT_TRUE(b.pipeline->loop.step());
        b.executor.fails = "the device is gone";
        const auto step = b.pipeline->loop.step();
        ASSERT_FALSE(step);
        EXPECT_EQ(step.error(), "the device is gone");
        EXPECT_EQ(b.ended[id].finish, FinishReason::kError);
        EXPECT_EQ(b.ended[id].why, "the device is gone");
        EXPECT_EQ(b.executor.cancels, 1u);
        EXPECT_EQ(b.used(), 0u);
        EXPECT_FALSE(b.pipeline->loop.has_unfinished());
    }
}

TEST(Pipeline, FailsTheRequestAloneWhoseTokenIsNone) {
    for (const bool overlaps : {false, true}) {
        Bench b(overlaps);
        const RequestId bad = b.add(5, 9), good = b.add(7, 3);
        b.executor.token = [bad](const pb_sample_row& row) {
            return row.id == bad && row.position == 6 ? -7 : static_cast<int32_t>(row.position);
        };
        b.run();
        EXPECT_THAT(b.ended[good].tokens, ElementsAre(7, 8, 9)) << overlaps;
        EXPECT_EQ(b.ended[bad].finish, FinishReason::kError);
        EXPECT_EQ(b.ended[bad].why, "sampler 'standard' gave token -7, expected 0 to 999");
        EXPECT_THAT(b.ended[bad].tokens, ElementsAre(5));
        EXPECT_EQ(b.used(), 0u);
    }
}

TEST(Pipeline, GivesNothingAfterAnAbort) {
    for (const bool overlaps : {false, true}) {
        Bench b(overlaps);
        const RequestId id = b.add(5, 50);
        for (int i = 0; i < 4; ++i) ASSERT_TRUE(b.pipeline->loop.step());
        const size_t before = b.ended[id].tokens.size();
        b.pipeline->output.lifecycle.abort(id);
        EXPECT_EQ(b.ended[id].finish, FinishReason::kAbort);
        b.run();
        EXPECT_EQ(b.ended[id].tokens.size(), before);
        EXPECT_EQ(b.used(), 0u) << "also what a step in flight wrote into";
    }
}

}  // namespace
}  // namespace patchbay::engine::testing::pipeline_test
