// What a bench reports, never how fast anything was.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.hpp"
#include "bench/grammar_bench.hpp"
#include "bench/model_bench.hpp"
#include "bench/spec_bench.hpp"
#include "bench/times.hpp"
#include "engine/simulation.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::bench::bench_test {
namespace {

TEST(AtShare, LiesBetweenTwoValuesWhereNoneIsAtIt) {
    EXPECT_DOUBLE_EQ(at_share({3, 1}, 0.5), 2) << "the median of two is neither the better nor the worse one";
    EXPECT_DOUBLE_EQ(at_share({5, 1, 3}, 0.5), 3);
    EXPECT_DOUBLE_EQ(at_share({1, 2, 3, 4, 5}, 0.9), 4.6);
    EXPECT_DOUBLE_EQ(at_share({7}, 0.99), 7);
    EXPECT_DOUBLE_EQ(at_share({4, 2}, 1), 4);
    EXPECT_DOUBLE_EQ(at_share({}, 0.5), 0);
}

TEST(WithPrefix, KeepsThreeDigits) {
    EXPECT_EQ(with_prefix(7.091e12, "FLOP/s"), "7.09 TFLOP/s");
    EXPECT_EQ(with_prefix(23.94e9, "B/s"), "23.9 GB/s");
    EXPECT_EQ(with_prefix(482e9, "B/s"), "482 GB/s");
    EXPECT_EQ(with_prefix(12, "B"), "12.0 B");
}

TEST(BenchMachine, HasWhatTheDeviceMeasured) {
    const auto machine = measure_machine(engine::testing::registry(), {"cpu", {{"isa", "plain"}}}, 2);
    ASSERT_TRUE(machine) << machine.error();
    EXPECT_EQ(machine->threads, 2u);
    for (const char* name : {"memory_read", "matmul_f32", "matmul_bf16", "matmul_i8"})
        EXPECT_GT((*machine)[name], 0) << name;
    EXPECT_EQ((*machine)["nothing"], 0);
}

TEST(BenchMachine, ReadsWhatCachesHoldAtTheirLimit) {
    constexpr double kMebi = 0x1p20;
    const Machine plain{"", 1, {{"memory_read", "B/s", 10e9}}};
    EXPECT_DOUBLE_EQ(plain.read_of(kMebi).seconds, kMebi / 10e9);
    const Machine cached{"", 1, {{"memory_read", "B/s", 10e9}, {"memory_read_16MiB", "B/s", 40e9},
                                {"memory_read_256KiB", "B/s", 80e9}, {"memory_read_x", "B/s", 1}}};
    const auto expect = [&](double bytes, double seconds, const char* limit) {
        const Machine::Read read = cached.read_of(bytes);
        EXPECT_DOUBLE_EQ(read.seconds, seconds) << bytes;
        EXPECT_EQ(read.limit, limit) << bytes;
    };
    expect(kMebi / 8, kMebi / 8 / 80e9, "memory_read_256KiB");
    expect(16 * kMebi, 16 * kMebi / 40e9, "memory_read_16MiB");
    expect(2048 * kMebi, 2048 * kMebi / 10e9, "memory_read");
    // Half way between 16 MiB and the GiB of memory_read, the time lies half way, too.
    expect(520 * kMebi, (16 * kMebi / 40e9 + 1024 * kMebi / 10e9) / 2, "memory_read");
    EXPECT_EQ(cached.read_of(0).seconds, 0);
    EXPECT_EQ((Machine{"", 1, {}}).read_of(kMebi).seconds, 0);
}

TEST(BenchModel, MeasuresEachCaseBesideItsLimit) {
    std::vector<std::string> said;
    const auto bench = bench_model(engine::testing::tiny_model(), engine::testing::registry(), {{1, 20, 6}, {4, 20, 6}},
                                   2, [&](const std::string& what) { said.push_back(what); });
    ASSERT_TRUE(bench) << bench.error();
    ASSERT_EQ(bench->cases.size(), 2u);
    const Machine& machine = bench->before;
    for (const CaseResult& c : bench->cases) {
        EXPECT_EQ(c.prefill.tokens, 20);
        EXPECT_EQ(c.prefill_steps, std::vector<uint32_t>{20});
        EXPECT_EQ(c.decode.tokens, c.asked.batch) << "the requests of a case decode together";
        for (const Speed& s : {c.prefill, c.decode}) {
            EXPECT_GT(s.step_seconds, 0);
            EXPECT_GT(s.limit_seconds, 0);
            EXPECT_TRUE(s.bound_by.starts_with("memory_read_") || s.bound_by == "matmul_f32") << s.bound_by;
            EXPECT_GT(machine[s.bound_by], 0) << s.bound_by;
        }
    }
    // Twice the layers' matrices (q 4, k and v 2 heads of 16, o, gate, up, down), and the head.
    const runner::ModelWork& work = bench->facts.model.work;
    EXPECT_EQ(work.linear_params, 2u * (64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 96));
    EXPECT_EQ(work.head_params, 64u * 300);
    EXPECT_EQ(work.attention, (std::vector<runner::AttentionWork>{{0, 2u * 4 * 4 * 16}}));
    EXPECT_EQ(said.back(), "measuring the machine again");
    const auto tree = nlohmann::json::parse(json_of(*bench));
    EXPECT_EQ(tree["cases"][1]["batch"], 4);
    EXPECT_GT(tree["cases"][1]["decode"]["tokens_per_second"], 0);
    EXPECT_NE(table_of(*bench).find("decode, batch 4, context 23"), std::string::npos) << table_of(*bench);
}

TEST(BenchModel, SaysHowManyStepsAGraphReplayedAndHowManyWereInFlight) {
    config::EngineConfig c = engine::testing::tiny_model();
    c.device = {"sim", {{"memory_read", "1e12"}, {"matmul_bf16", "1e14"}, {"matmul_f32", "1e13"},
                        {"memory_bytes", "1000000000"}}};
    const auto run = [&] { return bench_model(c, engine::testing::registry(), {{4, 20, 6}}, 1, [](const auto&) {}); };
    c.engine.cudagraph_mode = config::GraphMode::kNone;
    c.engine.async_scheduling = config::AsyncScheduling::kOff;
    const auto plain = run();
    ASSERT_TRUE(plain) << plain.error();
    EXPECT_EQ(plain->cases[0].replayed, 0);
    EXPECT_EQ(plain->cases[0].in_flight, 0);
    EXPECT_NE(table_of(*plain).find("step outside"), std::string::npos);
    c.engine.cudagraph_mode = config::GraphMode::kFullDecodeOnly;
    c.engine.async_scheduling = config::AsyncScheduling::kOn;
    const auto served = run();
    ASSERT_TRUE(served) << served.error();
    EXPECT_EQ(served->cases[0].replayed, 1);
    EXPECT_EQ(served->cases[0].in_flight, 1);
    EXPECT_TRUE(nlohmann::json::parse(json_of(*served))["cases"][0]["step_overhead_seconds"].is_null());
    EXPECT_EQ(table_of(*served).find("step outside"), std::string::npos);
}

// Of three layers, each in pages of its own, two see 16 tokens. A key takes 256 FLOP; 50 are before the last token.
TEST(BenchModel, CountsOnlyWhatWindowsSee) {
    double key_bytes = 0;
    const auto limits = [&](const char* read, const char* multiply, const char* window) {
        config::EngineConfig c = engine::testing::tiny_model();
        c.device = {"sim", {{"memory_read", read}, {"matmul_bf16", multiply}, {"matmul_f32", multiply},
                            {"memory_bytes", "1000000000"}, {"activation_dtype", "f32"}}};
        c.model.shape["architectures.0"] = "Gemma2ForCausalLM";
        c.model.shape["head_dim"] = "16";
        c.model.shape["num_hidden_layers"] = "3";
        c.model.shape["sliding_window"] = window;
        c.engine.max_num_batched_tokens = 20;
        const auto bench = bench_model(c, engine::testing::registry(), {{4, 48, 6}}, 1, [](const auto&) {});
        EXPECT_TRUE(bench) << bench.error();
        EXPECT_THAT(bench->facts.kv.windows, ::testing::UnorderedElementsAre(std::stoi(window), std::stoi(window), 0));
        key_bytes = static_cast<double>(bench->facts.kv.page_bytes) / 8;
        return bench->cases[0];
    };
    {
        const CaseResult all = limits("1e6", "1e15", "400"), windowed = limits("1e6", "1e15", "16");
        EXPECT_EQ(windowed.prefill_steps, (std::vector<uint32_t>{20, 20, 8}));
        EXPECT_NEAR((all.decode.limit_seconds - windowed.decode.limit_seconds) * 1e6, 4 * 2 * key_bytes * (51 - 16), 1);
        const double not_read = (40 - 35) + (48 - 23); // in the second and third step of the prompt
        EXPECT_NEAR((all.prefill.limit_seconds - windowed.prefill.limit_seconds) * 1e6, 2 * key_bytes * not_read, 1);
    }
    const CaseResult all = limits("1e15", "1e6", "400"), windowed = limits("1e15", "1e6", "16");
    EXPECT_NEAR((all.decode.limit_seconds - windowed.decode.limit_seconds) * 1e6, 4 * 2 * 256.0 * (51 - 16), 1);
    double not_seen = 0; // by tokens 17 to 48
    for (int seen = 17; seen <= 48; ++seen) not_seen += seen - 16;
    EXPECT_NEAR((all.prefill.limit_seconds - windowed.prefill.limit_seconds) * 1e6, 2 * 256 * not_seen, 1);
}

TEST(BenchModel, SaysWhyThereIsNoDecodeRow) {
    const auto run = [](uint32_t output) {
        config::EngineConfig c = engine::testing::tiny_model();
        c.device = {"sim", {{"memory_read", "1e12"}, {"matmul_bf16", "1e14"}, {"matmul_f32", "1e13"},
                            {"memory_bytes", "1000000000"}}};
        const auto bench = bench_model(c, engine::testing::registry(), {{40, 500, output}}, 1, [](const auto&) {});
        EXPECT_TRUE(bench) << bench.error();
        return bench ? table_of(*bench) : "";
    };
    const char* const note = "note: no decode row for batch 40, prompt 500: no step decoded all its requests at once";
    EXPECT_NE(run(2).find(note), std::string::npos) << run(2);
    EXPECT_EQ(run(1).find(note), std::string::npos) << "there is nothing to decode";
}

TEST(BenchSpec, WarmsUpAndTakesTurns) {
    config::EngineConfig c = engine::testing::tiny_model();
    c.proposer = {"ngram", {}};
    c.engine.num_speculative_tokens = 2;
    SpecCase asked{.prompt_tokens = 8, .requests = 2, .output = 4, .repeats = 2};
    RealClock clock;
    std::vector<std::string> said;
    const auto result = bench_spec(c, engine::testing::registry(), asked, clock,
                                   [&](const std::string& what) { said.push_back(what); });
    ASSERT_TRUE(result) << result.error();
    EXPECT_EQ(said, (std::vector<std::string>{"warm-up, without", "warm-up, with", "repeat 1 of 2, without",
                                              "repeat 1 of 2, with", "repeat 2 of 2, with", "repeat 2 of 2, without"}));
    EXPECT_EQ(result->outputs, 4u) << "those of the warm-up do not count";
    EXPECT_EQ(result->same, 4u);
}

// Else a proposer that remembers outputs would draft those of the passes before.
TEST(BenchSpec, HasOtherRandomPromptsInEachPass) {
    const SpecCase asked{.prompt_tokens = 6, .requests = 3, .copies = 2};
    std::set<std::vector<text::TokenId>> all;
    for (uint32_t pass = 0; pass < 4; ++pass)
        for (const auto& prompt : random_prompts(asked, 1000, pass)) {
            ASSERT_EQ(prompt.size(), 12u);
            EXPECT_TRUE(std::equal(prompt.begin(), prompt.begin() + 6, prompt.begin() + 6));
            all.insert(prompt);
        }
    EXPECT_EQ(all.size(), 12u);
    EXPECT_EQ(random_prompts(asked, 1000, 1), random_prompts(asked, 1000, 1)) << "the same with and without";
}

TEST(BenchSpec, GivesEachEngineHalfOfTheMemory) {
    config::EngineConfig c = engine::testing::tiny_model();
    c.device = {"sim", {{"memory_read", "1e12"}, {"matmul_bf16", "1e14"}, {"matmul_f32", "1e13"},
                        {"memory_bytes", "50000000"}}};
    c.proposer = {"ngram", {}};
    c.engine.num_speculative_tokens = 2;
    c.speculative = {config::DraftMode::kFixed, config::Verification::kSynthetic, {0.5, 0.5}};
    c.engine.num_blocks = 0;
    c.engine.gpu_memory_utilization = 0.8;
    const auto clock = engine::clock_for(c, engine::testing::registry());
    ASSERT_TRUE(clock) << clock.error();
    const auto result = bench_spec(c, engine::testing::registry(), {.requests = 1, .output = 4, .repeats = 1}, **clock,
                                   [](const auto&) {});
    ASSERT_TRUE(result) << result.error();
    const engine::EngineFacts& facts = result->facts;
    EXPECT_EQ(facts.kv.num_blocks, (20'000'000 - facts.model.weight_bytes) / facts.kv.page_bytes);
}

TEST(BenchModel, PrefillsInStepsOfTheTokenBudget) {
    config::EngineConfig c = engine::testing::tiny_model();
    c.engine.max_num_batched_tokens = 8;
    const auto bench =
        bench_model(c, engine::testing::registry(), {{1, 20, 4}, {4, 20, 4}}, 1, [](const std::string&) {});
    ASSERT_TRUE(bench) << bench.error();
    for (const CaseResult& one : bench->cases) {
        EXPECT_EQ(one.prefill_steps, (std::vector<uint32_t>{8, 8, 4}));
        EXPECT_EQ(one.prefill.tokens, 20);
        EXPECT_EQ(one.decode.tokens, one.asked.batch) << "the requests of a case decode together";
    }
    EXPECT_NE(table_of(*bench).find("prefill 20 in 3 steps"), std::string::npos) << table_of(*bench);
    EXPECT_EQ(nlohmann::json::parse(json_of(*bench))["cases"][0]["prefill_steps"], nlohmann::json({8, 8, 4}));
}

// 8 experts of which a token chooses 2: a batch reads those that any of its tokens chooses.
TEST(BenchModel, CountsOfAMixtureTheExpertsThatABatchChooses) {
    config::EngineConfig c = engine::testing::tiny_model();
    c.model.shape["architectures.0"] = "MixtralForCausalLM";
    c.model.shape["num_local_experts"] = "8";
    c.model.shape["num_experts_per_tok"] = "2";
    const auto bench = bench_model(c, engine::testing::registry(), {{1, 20, 6}}, 1, [](const auto&) {});
    ASSERT_TRUE(bench) << bench.error();
    const runner::ModelWork& work = bench->facts.model.work;
    const uint64_t expert = 3 * 64 * 96, all = 2 * 8 * expert;
    EXPECT_EQ(work.linear_params, 2u * (64 * 64 + 2 * 64 * 32 + 64 * 64 + 64 * 8)) << "attention and the router";
    EXPECT_EQ(work.params_of_token(), static_cast<double>(work.linear_params + 2 * 2 * expert));
    ASSERT_EQ(work.experts.size(), 1u);
    EXPECT_EQ(work.experts[0].params, all);
    const double others = static_cast<double>(work.linear_bytes), bytes = static_cast<double>(work.experts[0].bytes);
    EXPECT_GE(bytes, 4.0 * static_cast<double>(all));
    EXPECT_DOUBLE_EQ(work.bytes_of_pass(1), others + bytes * 2 / 8);
    EXPECT_DOUBLE_EQ(work.bytes_of_pass(2), others + bytes * (1 - 0.75 * 0.75));
    EXPECT_NEAR(work.bytes_of_pass(1000), others + bytes, 1);
}

TEST(BenchModel, RefusesWhatTheModelCannotHold) {
    const auto bench =
        bench_model(engine::testing::tiny_model(), engine::testing::registry(), {{1, 600, 6}}, 1, [](const auto&) {});
    ASSERT_FALSE(bench);
    EXPECT_NE(bench.error().find("606 is more than the model's 512 positions"), std::string::npos) << bench.error();
}

TEST(BenchGrammar, ReadsATextOfEachForm) {
    const auto vocabulary = made_vocabulary(5000);
    EXPECT_EQ(vocabulary->size(), 5000u);
    RealClock clock;
    const auto bench = bench_grammars(vocabulary, 1, clock);
    ASSERT_TRUE(bench) << bench.error();
    EXPECT_EQ(bench->results.size(), grammar_cases().size());
    for (const GrammarResult& r : bench->results) {
        EXPECT_GT(r.states, 0u) << r.name;
        EXPECT_GT(r.tokens, 0u) << r.name;
        EXPECT_GT(r.mask_seconds, 0) << r.name;
        EXPECT_GE(r.mask_seconds_p99, r.mask_seconds) << r.name;
        EXPECT_NE(table_of(*bench).find(r.name), std::string::npos);
    }
    EXPECT_EQ(nlohmann::json::parse(json_of(*bench))["vocabulary"], 5000);
}

}  // namespace
}  // namespace patchbay::bench::bench_test
