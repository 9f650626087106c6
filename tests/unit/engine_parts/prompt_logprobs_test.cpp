// Log-probabilities of a prompt's tokens: each noted once, however the prompt is cut into chunks and computed again.
#include "engine/sampling/prompt_logprobs.hpp"

#include <gmock/gmock.h>

#include <random>

#include "config/engine_config.hpp"
#include "engine/placement/placed.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::prompt_logprobs_test {
namespace {

constexpr uint32_t kVocab = 5000;

struct Bench {
    Sequence& add(uint32_t prompt_tokens) {
        SamplingParams p;
        p.prompt_logprobs = 1;
        s = sequence(3, prompt_tokens, p);
        part.add(*s, wire_params({.temperature = 0}, {}));
        return *s;
    }
    // Computes [begin, begin + tokens): each token's is minus itself, and the highest is token 9.
    void compute(uint32_t begin, uint32_t tokens) {
        SampleRows rows;
        Placed item{s.get(), tokens, s->confirmed(), 0, part.rows(*s, begin, begin + tokens)};
        const uint32_t end = begin + tokens;
        item.rows = end >= s->confirmed() ? 1 : 0;
        part.add_rows(*s, end - item.rows - item.prompt_rows, item.prompt_rows, rows);
        item.first_row = rows.count();
        StepSamples samples;
        samples.clear(rows.count(), 1);
        for (uint32_t i = 0; i < rows.count(); ++i) {
            const pb_sample_row& row = rows.rows[i];
            const TokenId next = s->tokens[row.position];
            ASSERT_EQ(row.allowed[static_cast<size_t>(next) / 32], 1u << (next % 32));
            ASSERT_EQ(row.output_count, 0u);
            ASSERT_EQ(row.prompt_count, row.position);
            samples.tokens[i] = next;
            samples.logprobs[i] = -static_cast<float>(next);
            samples.top_tokens[i] = 9;
            samples.top_logprobs[i] = -0.25f;
        }
        part.take(item, samples);
    }
    const std::vector<TokenLogprobs>& noted() const { return s->output.delta.prompt_logprobs; }

    config::EngineSettings settings{.max_num_seqs = 4, .num_speculative_tokens = 0};
    PromptLogprobs part{settings, kVocab};
    std::unique_ptr<Sequence> s;
};

TEST(PromptLogprobs, AreNotedOnceForEachTokenButTheFirstOverRandomChunks) {
    std::mt19937 draw(5);
    for (int trial = 0; trial < 300; ++trial) {
        Bench b;
        Sequence& s = b.add(1 + draw() % 40);
        for (uint32_t computed = 0; computed < s.prompt_count;) {
            const uint32_t n = 1 + draw() % std::min(9u, s.prompt_count - computed);
            ASSERT_NO_FATAL_FAILURE(b.compute(computed, n));
            computed += n;
            if (draw() % 6 == 0) computed = 0; // preempted: computed anew, and noted no second time
        }
        ASSERT_EQ(b.noted().size(), s.prompt_count - 1);
        for (uint32_t i = 0; i + 1 < s.prompt_count; ++i) {
            ASSERT_EQ(b.noted()[i].sampled, -static_cast<float>(s.tokens[i + 1]));
            ASSERT_EQ(b.noted()[i].top.size(), 1u);
            ASSERT_EQ(b.noted()[i].top[0].first, 9);
        }
        ASSERT_EQ(b.part.rows(s, 0, s.prompt_count), 0u);
    }
}

TEST(PromptLogprobs, TokensWithinALimitOfRowsHaveNoMoreAndOneMoreTokenWould) {
    std::mt19937 draw(6);
    int cut = 0;
    for (int trial = 0; trial < 2000; ++trial) {
        Bench b;
        Sequence& s = b.add(1 + draw() % 30);
        if (const uint32_t done = draw() % s.prompt_count; done > 0) b.compute(0, done);
        const uint32_t begin = draw() % s.prompt_count, wanted = 1 + draw() % (s.prompt_count - begin);
        const uint32_t limit = draw() % 12, n = b.part.tokens_within(s, begin, wanted, limit);
        ASSERT_LE(n, wanted);
        ASSERT_LE(b.part.rows(s, begin, begin + n), limit);
        if (n < wanted) {
            ASSERT_GT(b.part.rows(s, begin, begin + n + 1), limit);
        }
        cut += n < wanted;
    }
    EXPECT_GT(cut, 200);
}

TEST(PromptLogprobs, APromptIsComputedThoughItIsCachedUntilAllAreNoted) {
    Bench b;
    Sequence& s = b.add(6);
    EXPECT_FALSE(s.kv.reads_prefixes);
    b.compute(0, 4);
    EXPECT_FALSE(s.kv.reads_prefixes);
    b.compute(4, 2);
    EXPECT_TRUE(s.kv.reads_prefixes) << "after a preemption it may take what is cached";
}

TEST(PromptLogprobs, OfOneTokenThereAreNone) {
    Bench b;
    Sequence& s = b.add(1);
    EXPECT_TRUE(s.kv.reads_prefixes);
    EXPECT_EQ(b.part.rows(s, 0, 1), 0u);
}

TEST(PromptLogprobs, ASequenceThatDoesNotWantThemHasNoRows) {
    Bench b;
    const auto plain = sequence(4, 20);
    EXPECT_EQ(b.part.rows(*plain, 0, 20), 0u);
    EXPECT_EQ(b.part.tokens_within(*plain, 0, 20, 0), 20u);
    EXPECT_EQ(b.part.params_of(*plain), nullptr);
    Sequence& s = b.add(20);
    EXPECT_EQ(b.part.params_of(s)->temperature, 0);
    b.part.erase(s);
    EXPECT_EQ(b.part.rows(s, 0, 20), 0u);
}

TEST(PromptLogprobs, RowsOfAStepAreAsManyAsThoseOfAFullStep) {
    config::EngineSettings few{.max_num_seqs = 4, .num_speculative_tokens = 2},
        many{.max_num_seqs = 100, .num_speculative_tokens = 2};
    EXPECT_EQ(PromptLogprobs(few, kVocab).max_rows(), 64u);
    EXPECT_EQ(PromptLogprobs(many, kVocab).max_rows(), 300u);
}

}  // namespace
}  // namespace patchbay::engine::testing::prompt_logprobs_test
