// prompt_logprobs and best_of: against requests that ask the same engine for one token and the whole vocabulary.
#include <gmock/gmock.h>

#include "parallel/world.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "paths.hpp"

namespace patchbay::engine::logprobs_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

config::EngineConfig with_all_logprobs() {
    config::EngineConfig c = tiny_model();
    c.engine.max_logprobs = -1;
    return c;
}

// Of each prompt token but the first: its log-probability and those of the whole vocabulary, by a request that ends
// before it.
std::vector<TokenLogprobs> by_hand(const config::EngineConfig& c, const std::vector<TokenId>& prompt) {
    Harness h(c);
    std::vector<TokenLogprobs> out;
    for (size_t i = 1; i < prompt.size(); ++i) {
        SamplingParams p = greedy(1);
        p.logprobs = -1;
        const Output one = h.run(h.add({prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(i)}, p));
        TokenLogprobs entry = one.logprobs.at(0);
        for (const auto& [token, logprob] : entry.top)
            if (token == prompt[i]) entry.sampled = logprob;
        out.push_back(entry);
    }
    return out;
}

void expect_equal(const std::vector<TokenLogprobs>& want, const std::vector<TokenLogprobs>& got, size_t top) {
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(want[i].sampled, got[i].sampled) << i;
        ASSERT_EQ(got[i].top.size(), top);
        EXPECT_TRUE(std::equal(got[i].top.begin(), got[i].top.end(), want[i].top.begin())) << i;
    }
}

SamplingParams noting(int32_t top, uint32_t max_tokens) {
    SamplingParams p = greedy(max_tokens);
    p.prompt_logprobs = top;
    return p;
}

TEST(PromptLogprobs, AreThoseOfTheRowsBeforeEachToken) {
    const auto prompt = random_prompt(1, 30);
    const auto want = by_hand(with_all_logprobs(), prompt);
    Harness h(with_all_logprobs());
    for (const int32_t top : {0, 3, 300}) {
        const Output out = h.run(h.add(prompt, noting(top, 4)));
        expect_equal(want, out.prompt_logprobs, static_cast<size_t>(top));
        EXPECT_EQ(out.cached_tokens, 0u) << "of cached tokens there are no logits";
        EXPECT_EQ(out.tokens, h.run(h.add(prompt, greedy(4))).tokens);
    }
    EXPECT_EQ(h.run(h.add(prompt, noting(-1, 1))).prompt_logprobs.at(0).top.size(), 300u);
    EXPECT_TRUE(h.run(h.add({5}, noting(2, 1))).prompt_logprobs.empty());
}

TEST(PromptLogprobs, AreTheSameInChunksBesideOthersAndOnOtherPaths) {
    const auto prompt = random_prompt(1, 90);
    const auto check = [&](auto&& change, bool preempts) {
        auto c = with_all_logprobs(), plain = c;
        change(c);
        plain.device = c.device; // which may add up in another order
        plain.attention = c.attention;
        plain.sampler = c.sampler;
        const auto want = by_hand(plain, prompt);
        Harness h(c);
        std::vector<RequestId> ids;
        for (uint64_t i = 0; i < 4; ++i) {
            h.add(random_prompt(10 + i, 20), greedy(25));
            SamplingParams p = i == 3 ? seeded(i, 20) : noting(0, 20);
            p.prompt_logprobs = static_cast<int32_t>(i);
            p.n = i == 3 ? 3 : 1;
            ids.push_back(h.add(prompt, p));
        }
        h.run_all();
        uint64_t preemptions = 0;
        for (const StepReport& r : h.steps) preemptions += r.preemption.preemptions;
        EXPECT_EQ(preemptions > 0, preempts);
        EXPECT_EQ(std::ranges::any_of(h.steps, [](const StepReport& r) { return r.sync_reason.empty(); }),
                  c.engine.async_scheduling == config::AsyncScheduling::kOn);
        for (size_t i = 0; i < 4; ++i) expect_equal(want, h.outputs.at(ids[i]).prompt_logprobs, i);
        EXPECT_TRUE(h.others.at({ids[3], 1}).prompt_logprobs.empty());
    };
    check([](config::EngineConfig&) {}, false);
    check([](config::EngineConfig& c) { c.engine.max_num_batched_tokens = 17; }, false);
    check([](config::EngineConfig& c) {
        c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
        c.engine.num_speculative_tokens = 3;
    }, false);
    check([](config::EngineConfig& c) {
        c.engine.num_blocks = 30;
        c.engine.max_model_len = 120;
        c.engine.watermark = 0;
    }, true);
    check([](config::EngineConfig& c) {
        c.device = {"queues", {}};
        c.attention = {"replays", {}};
        c.sampler = {"replays", {}};
        c.engine.async_scheduling = config::AsyncScheduling::kOn;
    }, false);
}

TEST(PromptLogprobs, AreThoseOfOneRankWhenThereAreTwo) {
    const auto prompt = random_prompt(1, 25);
    Harness one(tiny_model());
    auto c = tiny_model();
    c.engine.tensor_parallel_size = 2;
    parallel::World world(std::string(kBuildDir) + "/bin/patchbay");
    VirtualClock clock;
    const auto two = Engine::create(c, registry(), clock, nullptr, &world);
    ASSERT_TRUE(two) << two.error();
    const auto want = one.run(one.add(prompt, noting(2, 1))).prompt_logprobs;
    std::vector<TokenLogprobs> got;
    Request r;
    r.prompt = prompt;
    r.sampling = noting(2, 1);
    r.on_output = [&](const RequestOutput& out) {
        got.insert(got.end(), out.prompt_logprobs.begin(), out.prompt_logprobs.end());
    };
    ASSERT_TRUE((*two)->add_request(std::move(r)));
    while ((*two)->has_unfinished()) ASSERT_TRUE((*two)->step());
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(want[i].sampled, got[i].sampled, 1e-4);
}

TEST(PromptLogprobs, OfALongPromptTakeSeveralStepsAndAreRefusedWithoutChunks) {
    auto c = tiny_model();
    c.engine.max_num_seqs = 4;
    const auto prompt = random_prompt(2, 200);
    Harness h(c);
    EXPECT_EQ(h.run(h.add(prompt, noting(0, 1))).prompt_logprobs.size(), 199u);
    EXPECT_EQ(h.steps.size(), 4u) << "64 rows a step";
    c.engine.enable_chunked_prefill = false;
    Harness whole(c);
    Request r;
    r.prompt = prompt;
    r.sampling = noting(0, 1);
    EXPECT_THAT(whole.engine->add_request(r).error(), HasSubstr("prompt_logprobs of a prompt of 200 tokens"));
}

TEST(Logprobs, AreLimitedByTheEngine) {
    auto c = tiny_model();
    c.engine.max_logprobs = 5;
    Harness h(c);
    Request r;
    r.prompt = {1, 2};
    r.sampling.logprobs = -1;
    EXPECT_EQ(h.engine->add_request(r).error(),
              "logprobs is -1 (all 300 tokens of the vocabulary), expected 0 to 5: raise engine.max_logprobs "
              "(--max-logprobs; -1: all tokens)");
    r.sampling.logprobs = 6;
    EXPECT_EQ(h.engine->add_request(r).error(),
              "logprobs is 6, expected 0 to 5: raise engine.max_logprobs (--max-logprobs; -1: all tokens)");
    r.sampling.logprobs.reset();
    r.sampling.prompt_logprobs = -2;
    EXPECT_EQ(h.engine->add_request(r).error(), "prompt_logprobs is -2, expected 0 to 5");
}

TEST(LogitsStatistics, AreMeansOverTheDistributionsOfTheTokens) {
    Harness h(with_all_logprobs());
    SamplingParams p = seeded(3, 10);
    p.logprobs = -1;
    p.logits_statistics = true;
    const Output out = h.run(h.add(random_prompt(1, 20), p));
    double entropy = 0, share = 0;
    for (const TokenLogprobs& t : out.logprobs) {
        share += std::exp(double{t.top[0].second}) / 10;
        for (const auto& [token, logprob] : t.top) entropy -= logprob * std::exp(double{logprob}) / 10;
    }
    ASSERT_TRUE(out.logits);
    EXPECT_NEAR(out.logits->entropy, entropy, 1e-4);
    EXPECT_NEAR(out.logits->first_share, share, 1e-5);
    EXPECT_GT(out.logits->max_logit, 0);
    EXPECT_FALSE(h.run(h.add(random_prompt(1, 20), greedy(3))).logits) << "not requested";
}

TEST(PrefixCache, IsNotReadWhereARequestSaysSo) {
    Harness h(tiny_model());
    const auto prompt = random_prompt(1, 30);
    h.run(h.add(prompt, greedy(1)));
    SamplingParams p = greedy(3);
    EXPECT_EQ(h.run(h.add(prompt, p)).cached_tokens, 24u);
    p.skip_reading_prefix_cache = true;
    EXPECT_EQ(h.run(h.add(prompt, p)).cached_tokens, 0u);
}

TEST(PrefixCache, GivesWhatARequestComputesToItsSaltAloneAlsoWhereItDoesNotReadItself) {
    for (const bool skips : {true, false}) { // or has prompt_logprobs, which need every row of the prompt
        Harness h(tiny_model());
        const auto prompt = random_prompt(1, 30);
        const auto cached = [&](std::string salt, const SamplingParams& p) {
            Request r;
            r.prompt = prompt;
            r.sampling = p;
            r.cache_salt = std::move(salt);
            return h.run(h.add(std::move(r))).cached_tokens;
        };
        SamplingParams first = greedy(1);
        first.skip_reading_prefix_cache = skips;
        if (!skips) first.prompt_logprobs = 0;
        EXPECT_EQ(cached("mine", first), 0u);
        EXPECT_EQ(cached("", greedy(1)), 0u) << "of another salt";
        EXPECT_EQ(cached("mine", greedy(1)), 24u);
    }
}

TEST(BestOf, GivesTheMostLikelyOfItsOutputs) {
    const auto prompt = random_prompt(1, 20);
    std::vector<std::pair<double, std::vector<TokenId>>> alone;
    for (uint32_t i = 0; i < 7; ++i) {
        Harness h(tiny_model());
        SamplingParams p = seeded(50 + i, 12);
        p.logprobs = 0;
        const Output out = h.run(h.add(prompt, p));
        double sum = 0;
        for (const TokenLogprobs& t : out.logprobs) sum += t.sampled;
        EXPECT_EQ(out.cumulative_logprob, sum);
        alone.emplace_back(sum, out.tokens);
    }
    std::ranges::stable_sort(alone, [](const auto& a, const auto& b) { return a.first > b.first; });
    Harness h(tiny_model());
    SamplingParams p = seeded(50, 12);
    p.n = 3;
    p.best_of = 7;
    const RequestId id = h.add(prompt, p);
    h.run_all();
    EXPECT_EQ(h.others.size(), 2u);
    for (uint32_t i = 0; i < 3; ++i) {
        const Output& got = i == 0 ? h.outputs.at(id) : h.others.at({id, i});
        EXPECT_EQ(got.tokens, alone[i].second) << i;
        EXPECT_EQ(got.cumulative_logprob, alone[i].first);
        EXPECT_EQ(got.finish, FinishReason::kLength);
        EXPECT_TRUE(got.logprobs.empty()) << "not requested";
        EXPECT_EQ(got.cached_tokens, 0u) << "which of them is best says nothing of the prompt";
    }
}

TEST(BestOf, EndsOnceForEachOutputWhenItIsAborted) {
    Harness h(tiny_model());
    SamplingParams p = seeded(50, 100);
    p.n = 2;
    p.best_of = 5;
    const RequestId id = h.add(random_prompt(1, 20), p);
    for (int i = 0; i < 4; ++i) h.step();
    h.engine->abort(id);
    EXPECT_EQ(h.outputs.at(id).finish, FinishReason::kAbort);
    EXPECT_EQ(h.others.at({id, 1}).finish, FinishReason::kAbort);
    EXPECT_EQ(h.others.size(), 1u);
    EXPECT_FALSE(h.engine->has_unfinished());
    Request r;
    r.prompt = {1, 2};
    r.sampling = p;
    r.sampling.best_of = 1;
    EXPECT_EQ(h.engine->add_request(r).error(), "best_of is 1, less than n of 2");
    r.sampling.best_of = 2;
    r.sampling.n = 1;
    r.sampling.temperature = 0;
    EXPECT_THAT(h.engine->add_request(r).error(), HasSubstr("best_of is 2 at temperature 0"));
}

}  // namespace
}  // namespace patchbay::engine::logprobs_test
