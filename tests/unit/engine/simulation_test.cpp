// Engines on the device `sim`: its times to the nanosecond, its tokens, and what it cannot do.
#include <gmock/gmock.h>

#include <algorithm>

#include "engine/simulation.hpp"
#include "scenario/scripted_engine.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::simulation_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// tiny_model() in bf16 on hardware that multiplies at 1 FLOP a nanosecond, starts an op in 1,000 ns, and has its memory
// at no cost.
config::EngineConfig simulated() {
    config::EngineConfig c = tiny_model();
    c.model.dtype = config::DType::kBf16;
    c.device.plugin = "sim";
    c.device.settings = {{"matmul_bf16", "1e9"},    {"matmul_f32", "1e9"}, {"memory_read", "1e21"},
                         {"memory_bytes", "100000000"}, {"launch_ns", "1000"}};
    return c;
}

struct Times {
    uint64_t arrival = 0;
    std::vector<uint64_t> tokens; // when each came
};

// Runs requests of (arrival, prompt tokens, output tokens) to their end.
std::vector<Times> times_of(const config::EngineConfig& c, const std::vector<std::array<uint64_t, 3>>& requests) {
    VirtualClock clock;
    clock.advance_ns(1); // an arrival at 0 would be "now"
    const auto made = Engine::create(c, registry(), clock);
    if (!made) throw std::runtime_error(made.error());
    std::vector<Times> out(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
        Request r;
        r.arrival_ns = out[i].arrival = 1 + requests[i][0];
        r.prompt = random_prompt(i, static_cast<uint32_t>(requests[i][1]));
        r.sampling.max_tokens = static_cast<uint32_t>(requests[i][2]);
        r.on_output = [&, i](const RequestOutput& o) {
            out[i].tokens.resize(out[i].tokens.size() + o.tokens.size(), o.time_ns);
        };
        const auto id = (*made)->add_request(std::move(r));
        if (!id) throw std::runtime_error(id.error());
    }
    while ((*made)->has_unfinished())
        if (const auto report = (*made)->step(); !report) throw std::runtime_error(report.error());
    return out;
}

// A layer of tiny_model() has 64 · (64 + 2 · 32) + 64 · 64 + 64 · 192 + 96 · 64 = 30,720 weights in its linears, so
// a token takes 2 · 2 · 30,720 = 122,880 FLOP in both, and 2 · 64 · 300 = 38,400 where it has logits. Attention takes
// 4 · 4 heads · 16 = 256 FLOP for each key that a token sees in a layer: 512.
// Ops of a step: the embedding, the last sum, the rows with logits, the last norm and the head; of a layer two norms,
// four linears, two ropes, SiLU and two of attention: 5 + 2 · 11 = 27, so 27,000 ns.
TEST(Simulation, GivesTtftAndTpotToTheNanosecond) {
    // A: 4 prompt tokens, 3 output tokens, at 0. B: 2 and 2, at 100 ns, while A's prompt is computed.
    const auto times = times_of(simulated(), {{0, 4, 3}, {100, 2, 2}});
    const auto ttft = [&](size_t i) { return times[i].tokens.at(0) - times[i].arrival; };
    // Step 1: 4 tokens, one row of logits, 1 + 2 + 3 + 4 = 10 keys: 491,520 + 38,400 + 5,120 + 27,000.
    constexpr uint64_t kFirst = 562'040;
    // Step 2: A's 5th token sees 5 keys, B's two 1 + 2; two rows: 3 · 122,880 + 76,800 + 512 · 8 + 27,000.
    constexpr uint64_t kSecond = 476'536;
    // Step 3: A's 6th token sees 6 keys, B's 3rd three: 2 · 122,880 + 76,800 + 512 · 9 + 27,000.
    constexpr uint64_t kThird = 354'168;
    EXPECT_EQ(ttft(0), kFirst);
    EXPECT_EQ(ttft(1), kFirst - 100 + kSecond);
    EXPECT_EQ(times[0].tokens.back() - times[0].tokens.front(), kSecond + kThird); // TPOT: 415,352
    EXPECT_EQ(times[1].tokens.back() - times[1].tokens.front(), kThird);           // TPOT
}

// Two ranks, of which one is charged: half of each linear, of the head and of the heads of attention. To the ops come
// two sums a layer of (T, 64) in bf16, 2 messages of half of 128 · T bytes each, and the logits of the other rank,
// a message of 150 · 4 bytes a row: with α of 100 ns and β of a byte a nanosecond.
TEST(Simulation, ChargesARankOfTwoAndWhatTheyExchange) {
    auto c = simulated();
    c.engine.tensor_parallel_size = 2;
    c.device.settings["collective_latency_ns"] = "100";
    c.device.settings["collective_bandwidth"] = "1e9";
    // 4 tokens, one row, 10 keys: 4 · 61,440 + 19,200 + 10 · 256, 32 ops, 4 · (200 + 512), 100 + 600
    EXPECT_EQ(times_of(c, {{0, 4, 1}})[0].tokens.at(0) - 1, 303'068u);

    c.device.settings.erase("collective_bandwidth");
    VirtualClock clock;
    EXPECT_THAT(Engine::create(c, registry(), clock).error(), HasSubstr("is one rank, not one of 2"));
}

TEST(Simulation, ChargesTheHostsOverheadOnceAStep) {
    auto c = simulated();
    const uint64_t without = times_of(c, {{0, 4, 3}})[0].tokens.back();
    c.device.settings["step_overhead_ns"] = "250000";
    EXPECT_EQ(times_of(c, {{0, 4, 3}})[0].tokens.back(), without + 3 * 250'000);
}

// Weights that are read cost what they take: at 1 byte a nanosecond a step reads all of them once, 2 bytes each; int8
// takes one, and a scale of 2 bytes for 32 columns.
TEST(Simulation, TakesTheTimeOfTheBytesThatTheWeightsHave) {
    auto c = simulated();
    c.device.settings["matmul_bf16"] = "1e21";
    c.device.settings["memory_read"] = "1e9";
    c.device.settings["launch_ns"] = "0";
    const uint64_t real = times_of(c, {{0, 1, 1}})[0].tokens.back();
    c.model.quantization = config::Quantization::kInt8;
    c.model.quantization_group_size = 32;
    const uint64_t rounded = times_of(c, {{0, 1, 1}})[0].tokens.back();
    const uint64_t weights = 2 * 30'720 + 64 * 300; // of the linears
    EXPECT_EQ(real - rounded, 2 * weights - (weights + weights / 32 * 2));
}

TEST(Simulation, WaitsForAnArrivalInNoTime) {
    constexpr uint64_t kYear = 31'536'000'000'000'000;
    const auto times = times_of(simulated(), {{0, 4, 1}, {kYear, 4, 1}});
    EXPECT_EQ(times[1].tokens.at(0) - times[1].arrival, times[0].tokens.at(0) - times[0].arrival);
}

TEST(Simulation, MakesTokensThatAreAFunctionOfSeedAndPosition) {
    auto c = simulated();
    const std::vector<TokenId> prompt = random_prompt(1, 20);
    std::vector<std::vector<TokenId>> texts;
    for (const uint32_t budget : {512u, 7u}) { // in one step, in chunks and beside another
        c.engine.max_num_batched_tokens = budget;
        Harness h(c);
        SamplingParams p = greedy(16);
        p.seed = 5;
        if (budget == 7) h.add(random_prompt(2, 30), greedy(9));
        texts.push_back(h.run(h.add(prompt, p)).tokens);
    }
    EXPECT_EQ(texts[0].size(), 16u);
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_GT(std::set<TokenId>(texts[0].begin(), texts[0].end()).size(), 8u);
}

TEST(Simulation, NeverMakesATokenThatEndsTheRequest) {
    std::vector<TokenId> eos = {0, 1, 2, 3}, stops = {4, 5};
    std::set<TokenId> seen;
    for (uint64_t position = 0; position < 500; ++position) seen.insert(synthetic_token(1, position, 8, eos, stops));
    EXPECT_THAT(seen, ::testing::ElementsAre(6, 7));
}

TEST(Simulation, RefusesWhatSyntheticTokensCannotAnswer) {
    Harness h(simulated());
    const auto refusal = [&](const SamplingParams& p) {
        Request r;
        r.prompt = {1, 2, 3};
        r.sampling = p;
        const auto id = h.engine->add_request(std::move(r));
        return id ? "accepted" : id.error();
    };
    SamplingParams p = greedy(4);
    p.logprobs = 2;
    EXPECT_THAT(refusal(p), HasSubstr("there are no logits"));
    EXPECT_EQ(refusal(greedy(4)), "accepted");

    auto c = simulated();
    c.proposer = config::PluginChoice{.plugin = "ngram", .settings = {}};
    c.engine.num_speculative_tokens = 2;
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("which drafts would be accepted is not known"));
}

struct Sevens final : execution::Script { // gives 7 for each token
    void planned(std::span<const pb_plan_item> items) override { plans.push_back(items.size()); }
    void sampled(std::span<const execution::ScriptedRows> rows) override {
        for (const execution::ScriptedRows& r : rows) std::fill(r.tokens.begin(), r.tokens.end(), 7);
    }
    std::vector<size_t> plans;
};

TEST(Simulation, TakesItsTokensFromAScriptIfThereIsOne) {
    VirtualClock clock;
    clock.advance_ns(1);
    Sevens script;
    auto made = scenario::create_scripted(simulated(), registry(), clock, {script, {}, nullptr});
    ASSERT_TRUE(made) << made.error();
    std::vector<TokenId> out;
    Request r;
    r.prompt = {1, 2, 3};
    r.sampling.max_tokens = 3;
    r.on_output = [&](const RequestOutput& o) { out.insert(out.end(), o.tokens.begin(), o.tokens.end()); };
    ASSERT_TRUE((*made)->add_request(std::move(r)));
    EXPECT_EQ((*made)->view().waiting.size(), 1u);
    while ((*made)->has_unfinished()) ASSERT_TRUE((*made)->step());
    EXPECT_THAT(out, ::testing::ElementsAre(7, 7, 7));
    EXPECT_THAT(script.plans, ::testing::ElementsAre(1, 1, 1));
}

TEST(Simulation, FollowsNoScriptWhereSomethingIsComputed) {
    RealClock clock;
    Sevens script;
    const auto made = scenario::create_scripted(tiny_model(), registry(), clock, {script, {}, nullptr});
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("which computes"));
}

TEST(Simulation, NeedsAnAttentionThatReportsItsCost) {
    auto c = simulated();
    c.attention.plugin = "reference";
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("attention 'reference' does not say what it costs"));
}

// 8 billion parameters, of which no byte is made or read; the KV of 70 GB is counted and not taken.
TEST(Simulation, RefusesWhatItsMemoryDoesNotHold) {
    auto c = simulated();
    c.model.shape = {{"architectures.0", "LlamaForCausalLM"}, {"hidden_size", "4096"},
                     {"intermediate_size", "14336"},          {"num_hidden_layers", "32"},
                     {"num_attention_heads", "32"},           {"num_key_value_heads", "8"},
                     {"vocab_size", "128256"},                {"max_position_embeddings", "8192"}};
    c.engine.num_blocks = 0;
    c.engine.kv_cache_memory = 60'000'000'000;
    c.device.settings["memory_bytes"] = "80000000000";
    VirtualClock clock;
    {
        const auto made = Engine::create(c, registry(), clock);
        ASSERT_TRUE(made) << made.error();
        EXPECT_EQ((*made)->facts().model.weight_bytes / 1'000'000'000, 16u); // 8.03 billion in bf16
        EXPECT_FALSE((*made)->facts().device_computes);
    }
    c.engine.kv_cache_memory = 70'000'000'000;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("of the 80000000000 bytes of the simulated hardware only"));
}

// A folder's config.json says what AWQ and GPTQ weights take; none of them is read.
TEST(Simulation, HasThePackedWeightsThatADeviceWouldHave) {
    for (const char* model :
         {"llama_awq", "llama_gptq", "llama_gptq_act", "llama_gptq_int8", "llama_fp8", "llama_bf16"}) {
        auto c = simulated();
        c.model = {};
        c.model.path = repository(std::string("tests/golden/models/") + model);
        c.model.tokenizer = "none";
        VirtualClock clock;
        const auto made = Engine::create(c, registry(), clock);
        ASSERT_TRUE(made) << made.error();
        c.device = config::PluginChoice{.plugin = "cpu", .settings = {}};
        const auto real = Engine::create(c, registry(), clock);
        ASSERT_TRUE(real) << real.error();
        EXPECT_EQ((*made)->facts().model.weight_dtype, (*real)->facts().model.weight_dtype) << model;
        EXPECT_EQ((*made)->facts().model.work.head_params, (*real)->facts().model.work.head_params) << model;
        EXPECT_EQ((*made)->facts().model.work.linear_params, (*real)->facts().model.work.linear_params) << model;
    }
}

TEST(Simulation, PassesOnARealClockToo) { // where others wait for it
    class Waits final : public Clock {
      public:
        uint64_t now_ns() const override { return now_ += 7; } // the host works
        void wait_until_ns(uint64_t when_ns) override { waited_until = now_ = when_ns; }
        mutable uint64_t now_ = 0;
        uint64_t waited_until = 0;
    } clock;
    const auto made = Engine::create(simulated(), registry(), clock);
    ASSERT_TRUE(made) << made.error();
    Request r;
    r.prompt = random_prompt(0, 4);
    r.sampling.max_tokens = 1;
    ASSERT_TRUE((*made)->add_request(std::move(r)));
    const uint64_t before = clock.now_;
    ASSERT_TRUE((*made)->step());
    EXPECT_GE(clock.waited_until, before + 562'040);
    EXPECT_LT(clock.waited_until, before + 562'040 + 1'000); // what the host does meanwhile is not added
}

}  // namespace
}  // namespace patchbay::engine::simulation_test
