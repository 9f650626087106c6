// Drafts out of logits that a test gives, by a sampler that it plays.
#include "engine/speculation/draft_sampling.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::draft_sampling_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One sequence that decodes, with one row in a pass.
struct Bench : RowNeighbours {
    explicit Bench(bool computes = true) {
        form.facts.vocab_size = 4;
        form.computes = computes;
        batch.row_count = 1;
        batch.tokens = &token;
        batch.probs = probs.data();
        sampler_policy.sampled = [](SampleBatch& b) { std::fill_n(b.raw.tokens, b.size(), 3); };
        sampler_policy.processed = [this](SampleBatch& b) { // the second half of the tokens is not to be drawn
            const float gone = -INFINITY;
            float* const row = static_cast<float*>(b.raw.logits.data);
            row[0] = row[1] = std::log(0.5f);
            row[2] = row[3] = gone;
            processed += 1;
        };
    }
    void run() {
        part.begin(batch, spans);
        std::vector<float> logits = {1, 2, 3, 4};
        const auto sampled = part.sample(logits);
        ASSERT_TRUE(sampled) << sampled.error();
        part.hand_out(*sampled, batch);
    }

    DraftForm form;
    host::Slot slot{"sampler", host::UnreadState::kStartsEmpty, clock};
    FakeSampler& sampler_policy = install<FakeSampler>(slot, kFakeSampler);
    DraftSampling part{{form, slot, rows, eos}};
    Sequence& s = decode(3);
    std::vector<DraftSpans::Span> spans = {{&s, 0, 4, 0u}};
    pb_runner_batch batch = patchbay::sized<pb_runner_batch>();
    TokenId token = -1;
    std::array<float, 4> probs{};
    int processed = 0;
};

TEST(DraftSampling, SamplesAsTheRequestDoes) {
    Bench t;
    t.batch.probs = nullptr;
    t.run();
    EXPECT_EQ(t.token, 3);
    EXPECT_EQ(t.processed, 0);
}

TEST(DraftSampling, DrawsFromWhatItHandsOut) {
    Bench t;
    t.s.sampling.params.temperature = 1;
    t.run();
    EXPECT_THAT(t.probs, ElementsAre(0.5f, 0.5f, 0, 0));
    EXPECT_TRUE(t.token == 0 || t.token == 1) << t.token;
}

TEST(DraftSampling, GivesAGreedyTokenAllOfIt) {
    Bench t;
    t.s.sampling.params.temperature = 0;
    t.run();
    EXPECT_EQ(t.token, 3);
    EXPECT_THAT(t.probs, ElementsAre(0, 0, 0, 1));
}

TEST(DraftSampling, HasNothingForAPassWithoutRows) {
    Bench t;
    t.part.begin(t.batch, t.spans);
    t.part.begin_without_rows();
    EXPECT_FALSE(*t.part.is_on_device());
    EXPECT_TRUE(t.part.sample({})->tokens.empty());
}

// By the declared acceptance: always, and never.
TEST(DraftSampling, MakesUpTheRightTokenOrAnotherOne) {
    Bench t(false);
    t.form.acceptance = 1;
    t.part.make_up(t.spans, t.batch);
    const TokenId right = t.token;
    ASSERT_TRUE(right >= 0 && right < 4);
    EXPECT_EQ(t.probs[static_cast<size_t>(right)], 1);
    t.form.acceptance = 0;
    t.part.make_up(t.spans, t.batch);
    EXPECT_NE(t.token, right);
}

TEST(DraftSampling, SaysWhereTheSamplerCannotGiveProbabilities) {
    Bench t;
    t.sampler_policy.processed = [](SampleBatch&) { throw Error(PB_FAILED, "cannot"); };
    t.part.begin(t.batch, t.spans);
    std::vector<float> logits(4);
    EXPECT_THAT(t.part.sample(logits).error(), HasSubstr("cannot"));
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_sampling_test
