// Tokens become output: what ends a sequence, and what is taken back of a step.
#include "engine/output/outputs.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "engine/loop/step_context.hpp"
#include "engine/output/repetition.hpp"
#include "engine/sampling/step_samples.hpp"
#include "text/tokenizer_json.hpp"
#include "unit/engine_parts/part_fixture.hpp"
#include "unit/text/spaced_words.hpp"

namespace patchbay::engine::testing::outputs_test {
namespace {

struct Ids { // outputs without text
    explicit Ids(SamplingParams p) : s(sequence(1, 4, std::move(p))) { outputs.begin(*s); }

    std::optional<Ending> append(TokenId t, bool must_end = false) {
        samples.clear(1, 0);
        samples.tokens[0] = t;
        samples.logprobs[0] = -0.5f;
        return outputs.append(*s, t, 0, samples, must_end);
    }
    std::vector<TokenId> eos = {2};
    Surprisals surprisals;
    StepContext context;
    Outputs outputs{nullptr, eos, 10, surprisals, context};
    StepSamples samples;
    std::unique_ptr<Sequence> s;
};

SamplingParams up_to(uint32_t max_tokens) {
    SamplingParams p;
    p.max_tokens = max_tokens;
    return p;
}

TEST(Outputs, EndAtTheirLength) {
    Ids by_tokens(up_to(2));
    EXPECT_FALSE(by_tokens.append(7));
    EXPECT_EQ(by_tokens.append(8)->reason, FinishReason::kLength);
    Ids by_model(up_to(100)); // of 10 tokens, 4 of them the prompt's
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(by_model.append(7)) << i;
    EXPECT_EQ(by_model.append(7)->reason, FinishReason::kLength);
    EXPECT_EQ(by_model.context.report.work.sampled_tokens, 6u);
}

TEST(Outputs, EndWhereTheirWorkloadSaysThoughTheyMayBeLonger) {
    Ids x(up_to(8));
    request_of(*x.s).ends_after = 2;
    EXPECT_FALSE(x.append(7));
    EXPECT_EQ(x.append(8)->reason, FinishReason::kStop);
}

TEST(Outputs, EndAtEndTokensOnceTheyMay) {
    SamplingParams p = up_to(8);
    p.min_tokens = 2;
    p.stop_token_ids = {5};
    Ids x(p);
    EXPECT_FALSE(x.append(2));
    EXPECT_FALSE(x.append(5));
    const auto ending = x.append(5);
    ASSERT_TRUE(ending);
    EXPECT_EQ(ending->reason, FinishReason::kStop);
    EXPECT_EQ(ending->why, "5");
    Ids y(up_to(8));
    EXPECT_EQ(y.append(2)->why, "") << "the model's own end";
    Ids z(up_to(8));
    EXPECT_EQ(z.append(7, true)->reason, FinishReason::kStop) << "nothing can follow it";
}

TEST(Outputs, TakeBackWhatAStepAppended) {
    SamplingParams p = up_to(8);
    p.logprobs = 0;
    Ids x(p);
    x.append(7);
    x.outputs.hand_out(*x.s);
    EXPECT_TRUE(x.s->output.delta.tokens.empty());
    x.append(8);
    EXPECT_EQ(x.s->output.delta.logprobs.size(), 1u);
    x.outputs.finish(*x.s, {FinishReason::kLength, ""});
    x.s->ended = true;
    EXPECT_DOUBLE_EQ(*x.s->output.delta.cumulative_logprob, -1.0);
    x.outputs.take_back(*x.s);
    EXPECT_TRUE(x.s->output.delta.tokens.empty());
    EXPECT_EQ(x.s->output.delta.finish, FinishReason::kAbort);
    EXPECT_DOUBLE_EQ(*x.s->output.delta.cumulative_logprob, -0.5) << "of the token that was handed out";
}

struct Words { // outputs of a prompt of three words
    explicit Words(SamplingParams p) {
        s = sequence(1, 3, std::move(p));
        s->tokens = request_of(*s).prompt = {text::kOnce, text::kUpon, text::kA};
        outputs.begin(*s);
    }
    std::optional<Ending> append(TokenId t) {
        samples.clear(1, 0);
        return outputs.append(*s, t, 0, samples, false);
    }
    std::vector<TokenId> eos = {text::kBegin, text::kUnknown};
    Surprisals surprisals;
    StepContext context;
    std::shared_ptr<const text::Tokenizer> tokenizer = *text::tokenizer_from_json(
        nlohmann::json::parse(text::kSpacedWords), nlohmann::json{{"eos_token", "<s>"}}, "test");
    Outputs outputs{tokenizer, eos, 100, surprisals, context};
    StepSamples samples;
    std::unique_ptr<Sequence> s;
};

TEST(Outputs, ContinueTheTextOfTheirPrompt) {
    Words x(up_to(8));
    x.append(text::kSpaceTime);
    EXPECT_EQ(x.s->output.delta.text, " time");
    x.outputs.take_back(*x.s);
    EXPECT_EQ(x.s->output.delta.text, "");
    x.s->tokens.resize(x.s->prompt_count);
    x.append(text::kSpaceTime);
    EXPECT_EQ(x.s->output.delta.text, " time") << "after a step that was taken back";
}

TEST(Outputs, StopAtATextThatBeginsWithASpace) {
    SamplingParams p = up_to(8);
    p.stop = {" time"};
    Words x(p);
    EXPECT_FALSE(x.append(text::kTime));
    EXPECT_EQ(x.append(text::kSpaceTime)->why, " time");
    EXPECT_EQ(x.s->output.delta.text, "time");
    Words y(p);
    const auto ending = y.append(text::kSpaceTime);
    ASSERT_TRUE(ending);
    EXPECT_EQ(ending->why, " time");
    EXPECT_EQ(y.s->output.delta.text, "");
}

// As in vLLM, whose stop_reason is null where the tokenizer's end token ends an output.
TEST(Outputs, NameNoStopTokenThatIsTheTokenizersOwnEnd) {
    const auto reason = [](SamplingParams p, TokenId t) {
        Words x(std::move(p));
        const auto ending = x.append(t);
        if (!ending) return std::string("none");
        EXPECT_EQ(ending->reason, FinishReason::kStop);
        EXPECT_EQ(x.s->output.delta.stop_token.has_value(), !ending->why.empty());
        return ending->why;
    };
    SamplingParams p = up_to(8);
    EXPECT_EQ(reason(p, text::kBegin), "");
    EXPECT_EQ(reason(p, text::kUnknown), "1") << "another end token of the model";
    p.stop_token_ids = {text::kBegin, text::kUnknown, text::kTime};
    EXPECT_EQ(reason(p, text::kBegin), "");
    EXPECT_EQ(reason(p, text::kUnknown), "1");
    EXPECT_EQ(reason(p, text::kTime), "6");
    p.ignore_eos = true;
    EXPECT_EQ(reason(p, text::kBegin), "0");
}

TEST(Outputs, EndWhereTheyRepeatAPattern) {
    SamplingParams p = up_to(100);
    p.min_tokens = 4;
    p.repetition_detection = {.max_pattern_size = 2, .min_pattern_size = 1, .min_count = 3};
    Ids x(p);
    for (const TokenId t : {3, 3, 3}) EXPECT_FALSE(x.append(t)) << "before min_tokens nothing ends it";
    const auto ending = x.append(3); // the fourth token, as in vLLM
    ASSERT_TRUE(ending);
    EXPECT_EQ(ending->reason, FinishReason::kRepetition);
    EXPECT_EQ(name_of(ending->reason), "repetition");
}

// Against the definition, over random outputs of few tokens.
TEST(RepetitionDetection, FindsWhatTheDefinitionSays) {
    std::mt19937 draw(1);
    size_t found = 0;
    for (int trial = 0; trial < 2000; ++trial) {
        std::vector<TokenId> output(draw() % 24);
        for (TokenId& t : output) t = static_cast<TokenId>(draw() % 2);
        const uint32_t min = 1 + draw() % 4;
        const auto max = min + static_cast<uint32_t>(draw() % 4), count = 2 + static_cast<uint32_t>(draw() % 3);
        const RepetitionDetection p{max, min, count};
        bool expected = false;
        for (uint32_t size = p.min_pattern_size; size <= p.max_pattern_size; ++size) {
            bool same = size * p.min_count <= output.size();
            for (size_t i = 0; same && i < size; ++i)
                for (size_t k = 1; k < p.min_count; ++k)
                    same = same && output[output.size() - 1 - i] == output[output.size() - 1 - i - k * size];
            expected = expected || same;
        }
        ASSERT_EQ(repeats(output, p), expected) << trial;
        found += expected;
    }
    EXPECT_GT(found, 200u);
    EXPECT_LT(found, 1800u);
    EXPECT_FALSE(repeats(std::vector<TokenId>(50, 7), {})) << "off";
    EXPECT_FALSE(repeats(std::vector<TokenId>{7, 8, 9}, {4, 0, 2})) << "a pattern has a token";
    EXPECT_TRUE(repeats(std::vector<TokenId>{7, 8, 8}, {4, 0, 2}));
}

}  // namespace
}  // namespace patchbay::engine::testing::outputs_test
