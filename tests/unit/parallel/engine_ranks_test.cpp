// Engines of several ranks, whose other ranks are processes of the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "config/load.hpp"
#include "config/show.hpp"
#include "engine/engine.hpp"
#include "execution/load_model.hpp"
#include "parallel/world.hpp"
#include "service/engine_thread.hpp"
#include "must.hpp"
#include "paths.hpp"

namespace patchbay::engine::engine_ranks_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const host::Registry& registry() {
    static const host::Registry all =
        must(host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}));
    return all;
}

config::EngineConfig demo(uint32_t ranks) {
    config::EngineConfig c;
    c.model.path = std::string(kSourceDir) + "/models/demo-target";
    c.model.dtype = config::DType::kF32;
    c.engine.tensor_parallel_size = ranks;
    c.engine.num_blocks = 64;
    c.engine.max_num_batched_tokens = 48; // a prompt takes several steps
    c.engine.threads = 1;
    return c;
}

struct Text {
    std::vector<TokenId> tokens;
    std::vector<float> logprobs;
    std::string error;
};

RequestId ask(Engine& engine, const std::string& prompt, uint32_t tokens, Text& out) {
    Request r;
    r.prompt = engine.tokenizer()->encode(prompt);
    r.sampling.temperature = 0;
    r.sampling.max_tokens = tokens;
    r.sampling.ignore_eos = true;
    r.sampling.logprobs = 0;
    r.on_output = [&out](const RequestOutput& o) {
        out.tokens.insert(out.tokens.end(), o.tokens.begin(), o.tokens.end());
        for (const auto& p : o.logprobs) out.logprobs.push_back(p.sampled);
        if (o.finish == FinishReason::kError) out.error = o.stop_reason;
    };
    return must(engine.add_request(std::move(r)));
}

constexpr const char* kPrompts[] = {"Once upon a time", "\"I will not go,\" said the Lion, and he sat down on the road",
                                    "The owl and the cat went to sea in a boat"};

// The texts of a few prompts at once.
std::vector<Text> texts(Engine& engine, uint32_t tokens = 24) {
    std::vector<Text> out(3);
    for (size_t i = 0; i < out.size(); ++i) ask(engine, kPrompts[i], tokens, out[i]);
    while (engine.has_unfinished()) {
        const auto step = engine.step();
        if (!step) {
            out[0].error = step.error();
            break;
        }
    }
    return out;
}

class Ranks : public ::testing::Test {
  protected:
    Result<std::unique_ptr<Engine>> make(const config::EngineConfig& c) {
        return Engine::create(c, registry(), clock_, nullptr, &world_);
    }

    parallel::World world_{std::string(kBuildDir) + "/bin/patchbay"};
    RealClock clock_;
};

TEST_F(Ranks, GiveTheGreedyTextsOfOne) {
    const auto expected = texts(*must(make(demo(1))));
    for (const uint32_t ranks : {2u, 4u}) {
        const auto engine = must(make(demo(ranks)));
        EXPECT_EQ(engine->facts().tensor_parallel_size, ranks);
        ASSERT_EQ(engine->facts().ranks.size(), ranks);
        const auto got = texts(*engine);
        for (size_t i = 0; i < expected.size(); ++i) {
            EXPECT_EQ(got[i].error, "");
            EXPECT_EQ(got[i].tokens, expected[i].tokens) << "prompt " << i << " on " << ranks;
            ASSERT_EQ(got[i].logprobs.size(), expected[i].logprobs.size());
            for (size_t k = 0; k < got[i].logprobs.size(); ++k)
                EXPECT_NEAR(got[i].logprobs[k], expected[i].logprobs[k], 1e-4);
        }
    }
}

// Pages that sequences share are copied on every rank before one of them writes.
TEST_F(Ranks, GiveEachOutputOfARequestTheTextOfOne) {
    const auto outputs = [&](uint32_t ranks) {
        const auto engine = must(make(demo(ranks)));
        std::vector<std::vector<text::TokenId>> out(3);
        Request r;
        r.prompt = engine->tokenizer()->encode("Once upon a time");
        r.sampling.n = 3;
        r.sampling.seed = 5;
        r.sampling.max_tokens = 24;
        r.on_output = [&](const RequestOutput& o) {
            out[o.index].insert(out[o.index].end(), o.tokens.begin(), o.tokens.end());
        };
        must(engine->add_request(std::move(r)));
        while (engine->has_unfinished()) must(engine->step());
        return out;
    };
    const auto expected = outputs(1);
    EXPECT_NE(expected[0], expected[1]);
    EXPECT_EQ(outputs(2), expected);
}

// Likewise those that paths of drafts share.
TEST_F(Ranks, VerifyTreesOfDrafts) {
    auto c = demo(2);
    constexpr uint32_t kTokens = 100;
    const auto expected = texts(*must(make(c)), kTokens);
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 3;
    c.speculative.max_paths = 4;
    const auto engine = must(make(c));
    std::vector<Text> got(expected.size());
    for (size_t i = 0; i < got.size(); ++i) ask(*engine, kPrompts[i], kTokens, got[i]);
    uint32_t by_branches = 0;
    while (engine->has_unfinished()) by_branches += must(engine->step()).drafts.branch_tokens;
    EXPECT_GT(by_branches, 0u);
    for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].tokens, expected[i].tokens) << i;
        EXPECT_EQ(got[i].logprobs, expected[i].logprobs) << i;
    }
}

pid_t pid_of(const Engine& engine, uint32_t rank) { // "host (pid 12)"
    const std::string& text = engine.facts().ranks[rank];
    return std::stoi(text.substr(text.find("(pid ") + 5));
}

// What the engine says when rank 1 is given a signal in the midst of a text; and that it does say so. On a machine that
// is not held up that takes less than 5 s.
std::string after_signal(Engine& engine, int signal, Clock& clock) {
    constexpr uint64_t kLatest = 60'000'000'000;
    Text text;
    ask(engine, "Once upon a time", 800, text);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(engine.step());
    kill(pid_of(engine, 1), signal);
    const uint64_t sent = clock.now_ns();
    std::string said;
    while (said.empty() && engine.has_unfinished()) {
        const auto step = engine.step();
        if (!step) said = step.error();
    }
    EXPECT_LT(clock.now_ns() - sent, kLatest);
    EXPECT_EQ(text.error, said) << "the request gets the same reason";
    return said;
}

TEST_F(Ranks, ThatDieFailTheRunWithTheirReason) {
    const auto engine = must(make(demo(2)));
    EXPECT_THAT(after_signal(*engine, SIGKILL, clock_),
                AllOf(StartsWith("rank 1 ("), HasSubstr("was ended by signal 9 (Killed)")));
}

TEST_F(Ranks, ThatDieWhileNothingIsToBeDoneEndTheService) {
    auto engine = must(make(demo(2)));
    const pid_t rank = pid_of(*engine, 1);
    service::EngineThread thread(std::move(engine), {});
    EXPECT_EQ(thread.status().state, service::ServiceState::kRunning);
    kill(rank, SIGKILL);
    thread.wait();
    EXPECT_EQ(thread.status().state, service::ServiceState::kFailed);
    EXPECT_THAT(thread.status().reason, AllOf(StartsWith("rank 1 ("), HasSubstr("signal 9 (Killed)")));
}

// A terminal or a service manager sends them to every process of the job; a server lets its requests finish.
TEST_F(Ranks, LeaveItToRank0WhatASignalToAllOfThemEnds) {
    const auto engine = must(make(demo(2)));
    for (const int signal : {SIGINT, SIGTERM}) kill(pid_of(*engine, 1), signal);
    for (const Text& text : texts(*engine)) {
        EXPECT_EQ(text.error, "");
        EXPECT_EQ(text.tokens.size(), 24u);
    }
}

TEST_F(Ranks, ThatDieAmongSeveralAreNamed) {
    const auto engine = must(make(demo(4)));
    EXPECT_THAT(after_signal(*engine, SIGKILL, clock_),
                AllOf(StartsWith("rank 1 ("), HasSubstr("was ended by signal 9 (Killed)")));
}

TEST_F(Ranks, ThatHangFailTheRunWithTheirReason) {
    pid_t hung;
    {
        const auto engine = must(make(demo(2)));
        hung = pid_of(*engine, 1);
        EXPECT_THAT(after_signal(*engine, SIGSTOP, clock_),
                    AllOf(StartsWith("rank 1 ("), HasSubstr("hangs: no sign of life for ")));
    }
    EXPECT_EQ(kill(hung, 0), -1) << "it is still there";
}

TEST_F(Ranks, AreGoneWithTheirEngine) {
    pid_t other;
    {
        const auto engine = must(make(demo(2)));
        other = pid_of(*engine, 1);
        EXPECT_EQ(kill(other, 0), 0);
    }
    EXPECT_EQ(kill(other, 0), -1);
}

TEST_F(Ranks, ThatCannotShareTheModelAreRefused) {
    EXPECT_EQ(make(demo(3)).error(), demo(3).model.path + ": model 'llama': load_config: "
                                     "num_attention_heads 4 does not divide among 3 ranks "
                                     "(tensor_parallel_size may be 1, 2, 4)");
}

TEST_F(Ranks, SwapAlikeAndGiveTheTextsOfOne) {
    const auto expected = texts(*must(make(demo(1))));
    auto c = demo(2);
    c.engine.num_blocks = 4; // of 16 tokens, in pages of one group: not enough for three
    c.engine.max_model_len = 64;
    c.engine.watermark = 0;
    c.engine.enable_prefix_caching = false;
    c.engine.preemption_mode = config::PreemptionMode::kSwap;
    c.engine.num_swap_blocks = 50;
    const auto engine = must(make(c));
    std::vector<Text> got(3);
    for (size_t i = 0; i < got.size(); ++i) ask(*engine, kPrompts[i], 24, got[i]);
    uint32_t in = 0;
    while (engine->has_unfinished()) in += must(engine->step()).preemption.pages_to_device;
    EXPECT_GT(in, 0u);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(got[i].tokens, expected[i].tokens) << i;
}

TEST_F(Ranks, ThatAreNoProgramAreRefused) {
    parallel::World nowhere("/nowhere/patchbay");
    EXPECT_EQ(Engine::create(demo(2), registry(), clock_, nullptr, &nowhere).error(),
              "cannot start /nowhere/patchbay: No such file or directory");
    parallel::World wrong("/bin/false");
    EXPECT_THAT(Engine::create(demo(2), registry(), clock_, nullptr, &wrong).error(),
                AllOf(StartsWith("rank 1 ("), HasSubstr("exited with code 1")));
}

TEST_F(Ranks, OfAnotherLauncherAreRefused) {
    auto c = demo(2);
    c.parallel.launcher = config::Launcher::kSrun;
    EXPECT_EQ(make(c).error(), "parallel.launcher is srun, but this process was not started by it "
                               "(srun -n 2 patchbay …)");
}

execution::ModelParts parts(const config::EngineConfig& c) {
    static RealClock clock;
    static ThreadPool pool(1);
    static const pb_clock time = clock_service(clock);
    return must(execution::choose_parts(c, registry(), {&pool.service(), &time, nullptr}));
}

TEST(Facts, AreOthersWhereKeysAndValuesHaveOtherTypes) {
    const auto ours = parts(demo(2)).facts();
    auto other = demo(2);
    other.engine.kv_cache_dtype_layers = {{"0", 0, 1, config::KvDType::kInt8}};
    EXPECT_EQ(parallel::difference(ours, parts(demo(2)).facts()), "");
    EXPECT_EQ(parallel::difference(ours, parts(other).facts()),
              "kv_cache_dtype is float32, 0: int8 there, float32 on rank 0");
}

// Two kernels may choose different experts for the same token.
TEST(Facts, AreOthersWhereKernelsOrDevicesAreOthers) {
    execution::ModelParts ours = parts(demo(2)), theirs = parts(demo(2));
    std::strcpy(ours.device_info.isa, "avx512");
    std::strcpy(theirs.device_info.isa, "avx2");
    EXPECT_EQ(parallel::difference(ours.facts(), theirs.facts()), "isa is avx2 there, avx512 on rank 0");
    std::strcpy(theirs.device_info.isa, "avx512");
    std::strcpy(theirs.device_info.name, "another CPU");
    EXPECT_EQ(parallel::difference(ours.facts(), theirs.facts()), "") << "of the same kernels";
    ours.device_info.host_memory = theirs.device_info.host_memory = 0;
    std::strcpy(ours.device_info.name, "one GPU");
    std::strcpy(theirs.device_info.name, "another GPU");
    EXPECT_EQ(parallel::difference(ours.facts(), theirs.facts()), "device is another GPU there, one GPU on rank 0");
}

TEST(Configuration, ComesBackFromTheDocumentThatRanksAreGiven) {
    auto c = demo(2);
    c.engine.seed = 7;
    c.engine.watermark = 0.125;
    c.engine.kv_cache_memory = 123'456;
    c.engine.kv_cache_dtype_layers = {{"0", 0, 1, config::KvDType::kInt8},
                                      {"last 2", std::nullopt, 2, config::KvDType::kBf16}};
    c.engine.cudagraph_mode = config::GraphMode::kFull;
    c.engine.cudagraph_capture_sizes = {1, 4};
    c.engine.num_speculative_tokens = 2;
    c.proposer = config::PluginChoice{"ngram", {}};
    c.speculative.rejection_sample_method = config::Verification::kSynthetic;
    c.speculative.synthetic_acceptance_rates = {0.5, 0.25};
    c.device.settings = {{"isa", "plain"}};
    c.scheduler.plugin = "sjf";
    c.model.load_format = config::LoadFormat::kDummy;
    c.model.shape = {{"architectures.0", "LlamaForCausalLM"}, {"rope_scaling.factor", "8.0"}, {"x", "null"}};
    const auto document =
        must(config::parse_yaml(config::show_yaml(config::document_of(c, registry())), "rank 0's configuration"));
    const auto back = must(config::load_engine_config(document, registry()));
    const auto again = must(config::load_engine_config(config::document_of(back.config, registry()), registry()));
    EXPECT_EQ(back.config, again.config);
    EXPECT_EQ(back.config.model, c.model);
    EXPECT_EQ(back.config.model.shape.at("x"), "null");
    EXPECT_EQ(back.config.engine, c.engine);
    EXPECT_EQ(back.config.speculative, c.speculative);
    EXPECT_EQ(back.config.parallel, c.parallel);
    EXPECT_EQ(back.config.device.settings.at("isa"), "plain");
    EXPECT_EQ(back.config.scheduler.plugin, "sjf");
}

}  // namespace
}  // namespace patchbay::engine::engine_ranks_test
