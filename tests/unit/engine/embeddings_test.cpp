// Embeddings: hidden states of small models against transformers', and the same bits on every path to them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "parallel/world.hpp"
#include "paths.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::embeddings_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using Embedding = std::vector<float>;

constexpr PoolingType kBoth[] = {PoolingType::kLast, PoolingType::kMean};

Request pooled(std::vector<TokenId> prompt, PoolingType type) {
    Request r;
    r.prompt = std::move(prompt);
    r.pooling = type;
    return r;
}

Embedding embed(Harness& h, const std::vector<TokenId>& prompt, PoolingType type) {
    const Output out = h.run(h.add(pooled(prompt, type)));
    EXPECT_EQ(out.finish, FinishReason::kStop) << out.stop_reason;
    EXPECT_TRUE(out.tokens.empty());
    return out.embedding;
}

// Of the last token by a prompt that is computed at once, and the mean of what its beginnings give.
Embedding by_hand(const config::EngineConfig& c, const std::vector<TokenId>& prompt, PoolingType type) {
    Harness h(c);
    if (type == PoolingType::kLast) return embed(h, prompt, type);
    std::vector<double> sum;
    for (size_t n = 1; n <= prompt.size(); ++n) {
        const Embedding one = embed(h, {prompt.begin(), prompt.begin() + static_cast<long>(n)}, PoolingType::kLast);
        sum.resize(one.size());
        for (size_t i = 0; i < one.size(); ++i) sum[i] += double{one[i]};
    }
    Embedding out;
    for (const double x : sum) out.push_back(static_cast<float>(x / static_cast<double>(prompt.size())));
    return out;
}

TEST(Embeddings, AreTheHiddenStatesOfTransformers) {
    std::ifstream in(repository("tests/golden/embeddings.json"));
    const auto golden = nlohmann::json::parse(in);
    ASSERT_GE(golden.size(), 12u);
    for (const auto& [name, prompts] : golden.items()) {
        config::EngineConfig c;
        c.model.path = repository("tests/golden/models/" + name);
        c.model.tokenizer = "none";
        c.engine.num_blocks = 64;
        c.engine.threads = 1;
        c.engine.kv_cache_dtype = config::KvDType::kF32;
        if (name == "llama_bf16") c.device.settings["isa"] = "plain"; // others may round activations
        Harness h(c);
        ASSERT_GT(h.engine->facts().model.hidden_size, 0u) << name;
        for (const auto& prompt : prompts)
            for (const PoolingType type : kBoth) {
                const auto want = prompt[type == PoolingType::kLast ? "last" : "mean"].get<Embedding>();
                const Embedding got = embed(h, prompt["ids"].get<std::vector<TokenId>>(), type);
                ASSERT_EQ(got.size(), want.size()) << name;
                const auto [low, high] = std::ranges::minmax(want);
                for (size_t i = 0; i < want.size(); ++i)
                    ASSERT_NEAR(got[i], want[i], 1e-4 * (high - low)) << name << ", element " << i;
            }
    }
}

TEST(Embeddings, AreTheSameInChunksBesideOthersAndOnOtherPaths) {
    const auto prompt = random_prompt(1, 70);
    struct Expected {
        bool preempts = false, overlaps = false, speculates = false;
    };
    const auto check = [&](auto&& change, Expected expected) {
        auto c = tiny_model(), plain = c;
        change(c);
        plain.device = c.device; // which may add up in another order
        plain.attention = c.attention;
        plain.sampler = c.sampler;
        Harness h(c);
        std::vector<RequestId> ids;
        for (uint64_t i = 0; i < 6; ++i) {
            h.add(random_prompt(10 + i, 20), greedy(25));
            ids.push_back(h.add(pooled(prompt, kBoth[i % 2])));
        }
        while (h.engine->has_unfinished()) {
            h.step();
            const auto sound = h.engine->audit();
            ASSERT_TRUE(sound) << sound.error();
        }
        const auto any = [&](auto&& f) { return std::ranges::any_of(h.steps, f); };
        EXPECT_EQ(any([](const StepReport& r) { return r.preemption.preemptions > 0; }), expected.preempts);
        EXPECT_EQ(any([](const StepReport& r) { return r.sync_reason.empty(); }), expected.overlaps);
        EXPECT_EQ(any([](const StepReport& r) { return r.sync_reason == "pooling"; }), expected.overlaps);
        EXPECT_EQ(any([](const StepReport& r) { return r.drafts.accepted_tokens > 0; }), expected.speculates);
        EXPECT_EQ(h.engine->view().report.kv.used_pages, 0u);
        for (const PoolingType type : kBoth) {
            const Embedding want = by_hand(plain, prompt, type);
            for (size_t i = type == PoolingType::kMean; i < 6; i += 2)
                EXPECT_EQ(h.outputs.at(ids[i]).embedding, want) << i;
        }
    };
    check([](config::EngineConfig&) {}, {});
    check([](config::EngineConfig& c) { c.engine.max_num_batched_tokens = 17; }, {});
    check([](config::EngineConfig& c) { c.engine.enable_chunked_prefill = false; }, {});
    check([](config::EngineConfig& c) { c.engine.enable_prefix_caching = false; }, {});
    const auto crowded = [](config::EngineConfig& c) {
        c.engine.num_blocks = 24;
        c.engine.max_model_len = 120;
        c.engine.watermark = 0;
        c.engine.max_num_batched_tokens = 24;
    };
    check(crowded, {.preempts = true});
    check([&](config::EngineConfig& c) {
        crowded(c);
        c.engine.preemption_mode = config::PreemptionMode::kSwap;
        c.engine.num_swap_blocks = 64;
    }, {.preempts = true});
    check([](config::EngineConfig& c) {
        c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
        c.engine.num_speculative_tokens = 3;
    }, {.speculates = true});
    check([](config::EngineConfig& c) {
        c.device = {"queues", {}};
        c.attention = {"replays", {}};
        c.sampler = {"replays", {}};
        c.engine.async_scheduling = config::AsyncScheduling::kOn;
    }, {.overlaps = true});
}

TEST(Embeddings, OfStepsThatWouldReplayAGraphAreComputedWithoutIt) {
    auto c = tiny_model(), plain = c;
    c.device = plain.device = {"replays", {}};
    c.attention = plain.attention = {"replays", {}};
    c.engine.cudagraph_mode = config::GraphMode::kFull;
    c.engine.max_num_batched_tokens = 32;
    const auto prompt = random_prompt(4, 45);
    for (const PoolingType type : kBoth) {
        Harness h(c);
        h.run(h.add(prompt, greedy(3)));
        ASSERT_TRUE(h.steps.front().graph.replayed) << h.steps.front().graph.miss;
        h.steps.clear();
        EXPECT_EQ(embed(h, random_prompt(5, 45), type), by_hand(plain, random_prompt(5, 45), type));
        EXPECT_EQ(h.steps.back().graph.miss, "hidden_states");
        EXPECT_EQ(embed(h, {7}, type), by_hand(plain, {7}, type));
    }
}

TEST(Embeddings, AMeanReadsNoCachedPrefixAndALastTokenDoes) {
    const auto prompt = random_prompt(2, 50);
    Harness fresh(tiny_model()), h(tiny_model());
    h.run(h.add(prompt, greedy(1)));
    const Output mean = h.run(h.add(pooled(prompt, PoolingType::kMean)));
    EXPECT_EQ(mean.cached_tokens, 0u) << "of cached tokens there are no hidden states";
    EXPECT_EQ(mean.embedding, embed(fresh, prompt, PoolingType::kMean));
    const Output last = h.run(h.add(pooled(prompt, PoolingType::kLast)));
    EXPECT_EQ(last.cached_tokens, 48u);
    Request anew = pooled(prompt, PoolingType::kLast);
    anew.sampling.skip_reading_prefix_cache = true;
    const Output computed = h.run(h.add(anew));
    EXPECT_EQ(computed.cached_tokens, 0u);
    EXPECT_EQ(last.embedding, computed.embedding);
    Harness other(tiny_model());
    embed(other, prompt, PoolingType::kMean);
    EXPECT_EQ(other.run(other.add(prompt, greedy(1))).cached_tokens, 48u) << "what it computed is cached for others";
}

TEST(Embeddings, DoNotChangeTheTextOfOthers) {
    const auto logprobs_beside = [](bool embeds) {
        auto c = tiny_model();
        c.engine.max_num_batched_tokens = 32;
        Harness h(c);
        SamplingParams p = greedy(20);
        p.logprobs = 2;
        const RequestId id = h.add(random_prompt(3, 40), p);
        for (uint64_t i = 0; embeds && i < 4; ++i) h.add(pooled(random_prompt(30 + i, 33), kBoth[i % 2]));
        h.run_all();
        std::vector<float> out;
        for (const TokenLogprobs& l : h.outputs.at(id).logprobs) out.push_back(l.sampled);
        return out;
    };
    const auto alone = logprobs_beside(false);
    ASSERT_EQ(alone.size(), 20u);
    EXPECT_EQ(alone, logprobs_beside(true));
}

TEST(Embeddings, AreMadeByAnySampler) { // which has no say
    auto c = tiny_model();
    c.sampler.plugin = "greedy";
    Harness h(c), plain(tiny_model());
    const auto prompt = random_prompt(6, 9);
    EXPECT_EQ(embed(h, prompt, PoolingType::kMean), embed(plain, prompt, PoolingType::kMean));
}

TEST(Embeddings, ACallbackMayAskForOneWhileStepsOverlap) {
    auto c = tiny_model();
    c.device = {"queues", {}};
    c.attention = {"replays", {}};
    c.sampler = {"replays", {}};
    c.engine.async_scheduling = config::AsyncScheduling::kOn;
    Harness h(c);
    const auto prompt = random_prompt(8, 21);
    Embedding got;
    bool asked = false;
    Request r;
    r.prompt = random_prompt(7, 12);
    r.sampling = greedy(12);
    r.on_output = [&](const RequestOutput&) {
        if (std::exchange(asked, true)) return;
        Request embedding = pooled(prompt, PoolingType::kMean);
        embedding.on_output = [&](const RequestOutput& out) { got = out.embedding; };
        ASSERT_TRUE(h.engine->add_request(std::move(embedding)));
    };
    ASSERT_TRUE(h.engine->add_request(std::move(r)));
    h.run_all();
    auto plain = c;
    plain.engine.async_scheduling = config::AsyncScheduling::kOff;
    EXPECT_EQ(got, by_hand(plain, prompt, PoolingType::kMean));
}

TEST(Embeddings, OneThatIsAbortedGivesItsPagesBack) {
    auto c = tiny_model();
    c.engine.max_num_batched_tokens = 16;
    Harness h(c);
    const RequestId id = h.add(pooled(random_prompt(9, 60), PoolingType::kMean));
    h.step();
    h.step();
    EXPECT_GT(h.engine->view().report.kv.used_pages, 0u);
    h.engine->abort(id);
    h.run_all();
    EXPECT_EQ(h.outputs.at(id).finish, FinishReason::kAbort);
    EXPECT_TRUE(h.outputs.at(id).embedding.empty());
    h.step();
    EXPECT_EQ(h.engine->view().report.kv.used_pages, 0u);
    const auto sound = h.engine->audit();
    EXPECT_TRUE(sound) << sound.error();
}

TEST(Embeddings, APromptMayFillTheModelAndNoMore) {
    auto c = tiny_model();
    c.engine.max_model_len = 40;
    Harness h(c);
    EXPECT_EQ(embed(h, random_prompt(1, 40), PoolingType::kLast).size(), 64u);
    const auto refused = h.engine->add_request(pooled(random_prompt(1, 41), PoolingType::kLast));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), "a prompt of 41 tokens exceeds max_model_len of 40");
    EXPECT_EQ(h.engine->add_request(pooled({}, PoolingType::kLast)).error(), "the prompt is empty");
}

TEST(Embeddings, AreRefusedWhereThereAreNoHiddenStates) {
    auto simulated = tiny_model();
    simulated.model.dtype = config::DType::kBf16;
    simulated.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e21"},
                                {"memory_bytes", "100000000"}}};
    Harness nothing(simulated);
    const auto none = nothing.engine->add_request(pooled({1, 2}, PoolingType::kMean));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.failure().code, StatusCode::kUnsupported);
    EXPECT_THAT(none.error(), HasSubstr("computes nothing"));
    config::EngineConfig gpt2;
    gpt2.model.path = repository("tests/golden/models/gpt2");
    gpt2.model.tokenizer = "none";
    gpt2.engine.num_blocks = 64;
    gpt2.engine.threads = 1;
    Harness h(gpt2);
    EXPECT_EQ(h.engine->facts().model.hidden_size, 0u);
    const auto refused = h.engine->add_request(pooled({1, 2}, PoolingType::kMean));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.failure().code, StatusCode::kUnsupported);
    EXPECT_THAT(refused.error(), HasSubstr("does not give its hidden states"));
}

TEST(Embeddings, AreThoseOfOneRankWhenThereAreTwo) {
    const auto prompt = random_prompt(1, 25);
    Harness one(tiny_model());
    auto c = tiny_model();
    c.engine.tensor_parallel_size = 2;
    parallel::World world(std::string(kBuildDir) + "/bin/patchbay");
    VirtualClock clock;
    const auto two = Engine::create(c, registry(), clock, nullptr, &world);
    ASSERT_TRUE(two) << two.error();
    Embedding got;
    Request r = pooled(prompt, PoolingType::kMean);
    r.on_output = [&](const RequestOutput& out) { got = out.embedding; };
    ASSERT_TRUE((*two)->add_request(std::move(r)));
    while ((*two)->has_unfinished()) ASSERT_TRUE((*two)->step());
    const Embedding want = embed(one, prompt, PoolingType::kMean);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(want[i], got[i], 1e-4);
}

}  // namespace
}  // namespace patchbay::engine::embeddings_test
