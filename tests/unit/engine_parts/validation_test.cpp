// Which sampling parameters are refused, and with which words; and what samplers are shown of the others.
#include "engine/request/validation.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "engine/request/sampling_params.hpp"

namespace patchbay::engine::testing::validation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refused(SamplingParams p, SamplingLimits limits = {1000, 100}) {
    const auto checked = check_sampling(p, limits);
    return checked ? "" : checked.error();
}
template <class F>
std::string with(F&& change) {
    SamplingParams p;
    change(p);
    return refused(std::move(p));
}

TEST(Validation, TakesTheDefaults) { EXPECT_EQ(refused({}), ""); }

TEST(Validation, TakesEachNumberUpToItsBoundsAndNoFurther) {
    for (const SamplingRange& r : kSamplingRanges) {
        const auto at = [&](float x) { return with([&](SamplingParams& p) { p.*r.field = x; }); };
        EXPECT_EQ(at(r.low), "") << r.name;
        EXPECT_EQ(at(r.high), "") << r.name;
        EXPECT_THAT(at(std::nextafter(r.low, -INFINITY)), HasSubstr(std::string(r.name) + " is ")) << r.name;
        EXPECT_THAT(at(std::nextafter(r.high, INFINITY)), HasSubstr(r.name)) << r.name;
        EXPECT_THAT(at(NAN), HasSubstr(r.name)) << r.name;
    }
    EXPECT_EQ(with([](SamplingParams& p) { p.temperature = 101; }), "temperature is 101, expected 0 to 100");
    EXPECT_EQ(with([](SamplingParams& p) { p.top_p = 1e-7f; }), "") << "the likeliest alone, as in vLLM";
    EXPECT_EQ(with([](SamplingParams& p) { p.min_p = 1.0000002f; }), "min_p is 1.0000002, expected 0 to 1");
}

TEST(Validation, RefusesWhatContradictsItself) {
    EXPECT_EQ(with([](SamplingParams& p) { p.max_tokens = 0; }), "max_tokens is 0, expected at least 1");
    EXPECT_EQ(with([](SamplingParams& p) { p.min_tokens = 17; }), "min_tokens is 17, more than max_tokens of 16");
    EXPECT_EQ(with([](SamplingParams& p) { p.n = 3, p.best_of = 2; }), "best_of is 2, less than n of 3");
    EXPECT_EQ(with([](SamplingParams& p) { p.n = 3, p.temperature = 0; }),
              "n is 3 at temperature 0, where all outputs would be the same");
    EXPECT_EQ(with([](SamplingParams& p) { p.best_of = 3, p.temperature = 0; }),
              "best_of is 3 at temperature 0, where all outputs would be the same");
    EXPECT_EQ(with([](SamplingParams& p) { p.n = 2, p.beam_width = 2, p.temperature = 0; }), "")
        << "beams draw nothing";
    EXPECT_THAT(with([](SamplingParams& p) { p.n = 0; }), HasSubstr("n is 0, expected 1 to 128"));
    EXPECT_THAT(with([](SamplingParams& p) { p.mirostat = 1; }), HasSubstr("mirostat is 1"));
    EXPECT_EQ(with([](SamplingParams& p) { p.repetition_detection = {2, 3, 3}; }),
              "repetition_detection.min_pattern_size is 3, more than max_pattern_size of 2");
    EXPECT_EQ(with([](SamplingParams& p) { p.repetition_detection = {0, 0, 0}; }), "") << "vLLM's defaults: off";
    EXPECT_EQ(with([](SamplingParams& p) { p.repetition_detection = {4, 0, 2}; }), "");
    EXPECT_EQ(with([](SamplingParams& p) { p.repetition_detection = {4, 0, 0}; }),
              "repetition_detection.min_count is 0, expected 2 to 1000000");
}

TEST(Validation, RefusesTokensThatTheModelDoesNotHave) {
    for (const TokenId t : {-1, 1000}) {
        const std::string number = std::to_string(t);
        EXPECT_THAT(with([&](SamplingParams& p) { p.logit_bias = {{t, 1.0f}}; }),
                    HasSubstr("logit_bias for token " + number + ", expected 0 to 999"));
        EXPECT_THAT(with([&](SamplingParams& p) { p.dry_breakers = {5, t}; }),
                    HasSubstr("dry_breakers has token " + number));
    }
    EXPECT_EQ(with([](SamplingParams& p) { p.logit_bias = {{0, 1.0f}, {999, -1.0f}}; }), "");
    EXPECT_THAT(with([](SamplingParams& p) { p.logit_bias = {{5, NAN}}; }), HasSubstr("logit_bias is"));
}

TEST(Validation, RefusesTooManyAndTooLongStops) {
    EXPECT_EQ(with([](SamplingParams& p) { p.stop.assign(64, "x"); }), "");
    EXPECT_THAT(with([](SamplingParams& p) { p.stop.assign(65, "x"); }), HasSubstr("65 stop strings"));
    EXPECT_THAT(with([](SamplingParams& p) { p.stop = {""}; }), HasSubstr("0 bytes"));
    EXPECT_THAT(with([](SamplingParams& p) { p.stop = {std::string(4097, 'x')}; }), HasSubstr("4097 bytes"));
    EXPECT_THAT(with([](SamplingParams& p) { p.stop_token_ids.assign(1025, 1); }), HasSubstr("1025 stop_token_ids"));
}

TEST(Validation, OneLessThanNoneOfLogprobsStandsForTheWholeVocabulary) {
    SamplingParams p;
    p.logprobs = -1;
    p.prompt_logprobs = -1;
    ASSERT_TRUE(check_sampling(p, {1000, -1}));
    EXPECT_EQ(p.logprobs, 1000);
    EXPECT_EQ(p.prompt_logprobs, 1000);
    p = {};
    p.logprobs = -1;
    EXPECT_EQ(refused(p), "logprobs is -1 (all 1000 tokens of the vocabulary), expected 0 to 100: raise "
                          "engine.max_logprobs (--max-logprobs; -1: all tokens)");
    p.logprobs = 100;
    EXPECT_EQ(refused(p), "");
    p.logprobs = -2;
    EXPECT_EQ(refused(p), "logprobs is -2, expected 0 to 100");
    p.logprobs = 1001;
    EXPECT_EQ(refused(p, {1000, -1}), "logprobs is 1001, expected 0 to 1000") << "nothing would allow it";
}

TEST(Validation, SortsBreakersAsSamplersWantThem) {
    SamplingParams p;
    p.dry_breakers = {9, 3, 5};
    ASSERT_TRUE(check_sampling(p, {1000, 100}));
    EXPECT_THAT(p.dry_breakers, ElementsAre(3, 5, 9));
}

TEST(Validation, TokensThatAreMadeUpHaveNoLogitsAndNoText) {
    const auto check = [](auto change, TokenText text) {
        SamplingParams p;
        change(p);
        const auto checked = check_made_up(p, text);
        EXPECT_TRUE(checked || checked.code() == StatusCode::kUnsupported);
        return static_cast<bool>(checked);
    };
    const auto logprobs = [](SamplingParams& p) { p.logprobs = 1; };
    const auto words = [](SamplingParams& p) { p.bad_words = {"x"}; };
    const auto stops = [](SamplingParams& p) { p.stop = {"x"}; };
    for (const TokenText text : {TokenText::kNone, TokenText::kGiven}) {
        EXPECT_TRUE(check([](SamplingParams&) {}, text));
        EXPECT_FALSE(check(logprobs, text));
        EXPECT_FALSE(check(words, text));
        EXPECT_EQ(check(stops, text), text == TokenText::kGiven) << "a script may say a text";
    }
}

TEST(Validation, RatesOfAcceptanceRefuseWhatIsOfTheModel) {
    SamplingParams p;
    EXPECT_TRUE(check_synthetic_acceptance(p));
    p.beam_width = 2;
    EXPECT_THAT(check_synthetic_acceptance(p).error(), HasSubstr("beam_width with rejection_sample_method: synthetic"));
}

TEST(WireParams, AskForLogprobsAlsoWhereOnlyTheirSumIsWanted) {
    SamplingParams p;
    EXPECT_EQ(wire_params(p, {}).logprobs, 0u);
    p.best_of = 2;
    EXPECT_EQ(wire_params(p, {}).logprobs, 1u) << "the sampled token's";
    p.logprobs = 5;
    EXPECT_EQ(wire_params(p, {}).logprobs, 1u + 5u);
}

TEST(WireParams, WithoutMirostatItsTauIsOff) {
    SamplingParams p;
    p.mirostat_tau = 4;
    EXPECT_EQ(wire_params(p, {}).mirostat_tau, 0);
    p.mirostat = 2;
    EXPECT_EQ(wire_params(p, {}).mirostat_tau, 4);
}

TEST(WireParams, OfAPromptChangeNothingOfTheLogits) {
    SamplingParams p;
    p.temperature = 0.7f;
    p.repetition_penalty = 2;
    p.top_k = 3;
    p.prompt_logprobs = 4;
    const pb_sampling_params out = params_of_prompt(p);
    EXPECT_EQ(out.temperature, 0);
    EXPECT_EQ(out.repetition_penalty, 1);
    EXPECT_EQ(out.top_k, 0);
    EXPECT_EQ(out.logprobs, 1u + 4u);
}

}  // namespace
}  // namespace patchbay::engine::testing::validation_test
