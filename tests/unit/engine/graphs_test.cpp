// Steps by graphs: on the device `sim` what they cost to the nanosecond and why a step has none, on the device
// `replays` that numbers are those of steps without.
#include <gtest/gtest.h>

#include <array>

#include "unit/engine/engine_fixture.hpp"
#include "unit/engine/recorded_rows.hpp"

namespace patchbay::engine::graphs_test {
namespace {

using namespace testing;
using config::GraphCapture;
using config::GraphMode;

// tiny_model() in bf16 on hardware that multiplies at 1 FLOP a nanosecond, starts an op in 1,000 ns, a graph in 300 and
// an op of a graph in 10, and has its memory at no cost.
config::EngineConfig simulated(GraphMode mode) {
    config::EngineConfig c = tiny_model();
    c.model.dtype = config::DType::kBf16;
    c.device.plugin = "sim";
    c.device.settings = {{"matmul_bf16", "1e9"},        {"matmul_f32", "1e9"},  {"memory_read", "1e21"},
                         {"memory_bytes", "100000000"}, {"launch_ns", "1000"},  {"graph_replay_ns", "300"},
                         {"graph_node_ns", "10"},       {"graph_node_bytes", "100"}};
    c.engine.max_num_seqs = 8;
    c.engine.cudagraph_mode = mode;
    return c;
}

// Durations of the steps that requests of (prompt tokens, output tokens) take, all of them there from the beginning.
std::vector<StepReport> steps_of(const config::EngineConfig& c, const std::vector<std::array<uint32_t, 2>>& requests) {
    Harness h(c);
    for (size_t i = 0; i < requests.size(); ++i) h.add(random_prompt(i, requests[i][0]), greedy(requests[i][1]));
    h.run_all();
    return h.steps;
}

uint64_t duration(const StepReport& r) { return r.phase_ns[static_cast<size_t>(Phase::kRun)]; }

// As in simulation_test.cpp: a token takes 122,880 FLOP, 38,400 where it has logits, and 512 for each key that it sees.
// 27 ops, of which 4 are attention's; a decode of one sequence that sees 5 keys:
constexpr uint64_t token_ns(uint64_t keys) { return 122'880 + 38'400 + 512 * keys; }

TEST(Graphs, AReplayCostsItsOpsWithoutTheirLaunches) {
    const auto without = steps_of(simulated(GraphMode::kNone), {{4, 3}});
    ASSERT_EQ(without.size(), 3u);
    EXPECT_EQ(duration(without[1]), token_ns(5) + 27'000);
    EXPECT_EQ(without[1].graph.miss, "disabled");

    const auto with = steps_of(simulated(GraphMode::kFullDecodeOnly), {{4, 3}});
    ASSERT_EQ(with.size(), 3u);
    EXPECT_EQ(duration(with[0]), duration(without[0])) << "the prompt has no graph";
    EXPECT_EQ(with[0].graph.miss, "mixed_batch");
    EXPECT_EQ(duration(with[1]), token_ns(5) + 300 + 27 * 10);
    EXPECT_EQ(duration(with[2]), token_ns(6) + 300 + 27 * 10) << "attention is that of the batch, not of the capture";
    EXPECT_TRUE(with[2].graph.replayed);
    EXPECT_EQ(with[2].graph.size, 1u);
    EXPECT_EQ(with[2].graph.padded_tokens, 0u);
}

TEST(Graphs, PaddingIsComputedToo) {
    const auto steps = steps_of(simulated(GraphMode::kFullDecodeOnly), {{4, 2}, {4, 2}, {4, 2}});
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[1].graph.size, 4u);
    EXPECT_EQ(steps[1].graph.padded_tokens, 1u);
    EXPECT_EQ(steps[1].work.scheduled_tokens, 3u);
    EXPECT_EQ(duration(steps[1]), 3 * token_ns(5) + token_ns(1) + 300 + 27 * 10); // it sees one key
}

TEST(Graphs, InModeFullPromptsHaveThemToo) {
    auto c = simulated(GraphMode::kFull);
    c.engine.max_num_seqs = 2;
    const auto steps = steps_of(c, {{5, 2}});
    ASSERT_EQ(steps.size(), 2u);
    // 5 tokens in a graph of 8 that has two rows of logits: 1 + … + 5 keys, and three that see one.
    EXPECT_EQ(duration(steps[0]), 8 * 122'880 + 2 * 38'400 + 512 * (15 + 3) + 300 + 27 * 10);
    EXPECT_EQ(steps[0].graph.padded_tokens, 3u);
    EXPECT_TRUE(steps[1].graph.replayed);
}

TEST(Graphs, AreCapturedAtLoadOrWhenASizeIsMet) {
    auto c = simulated(GraphMode::kFullDecodeOnly);
    VirtualClock clock;
    const auto eager = Engine::create(c, registry(), clock);
    ASSERT_TRUE(eager) << eager.error();
    EXPECT_EQ((*eager)->facts().graphs.count, 4u); // of 1, 2, 4 and 8
    EXPECT_EQ((*eager)->facts().graphs.bytes, 4u * 23 * 100) << "attention's part is asked anew, so it has no nodes";
    // A pass of each size, every token with one key, and the recording of 23 ops.
    EXPECT_EQ((*eager)->facts().graphs.capture_ns, 15 * token_ns(1) + 4 * (27'000 + 23'000));

    c.engine.cudagraph_capture = GraphCapture::kLazy;
    const auto steps = steps_of(c, {{4, 4}});
    EXPECT_EQ(steps[0].graph.captured, 0u);
    EXPECT_EQ(steps[1].graph.miss, "not_captured");
    EXPECT_EQ(steps[1].graph.capture_ns, 23'000u);
    EXPECT_EQ(duration(steps[1]), token_ns(5) + 27'000 + 23'000);
    EXPECT_EQ(steps[1].graph.captured, 1u);
    EXPECT_EQ(steps[1].graph.bytes, 2300u);
    EXPECT_TRUE(steps[2].graph.replayed);
    EXPECT_EQ(steps[2].graph.capture_ns, 0u);
}

TEST(Graphs, AreNotKeptPastTheMemoryTheyMayTake) {
    auto c = simulated(GraphMode::kFullDecodeOnly);
    c.engine.cudagraph_memory = 5000; // of four times 2,300
    const auto steps = steps_of(c, {{4, 3}});
    EXPECT_EQ(steps[1].graph.captured, 2u);
    EXPECT_EQ(steps[1].graph.miss, "not_captured") << "the larger ones came first";
    EXPECT_EQ(steps[2].graph.miss, "not_captured");
    EXPECT_EQ(steps[2].graph.capture_ns, 0u) << "it is not tried in every step";
}

TEST(Graphs, EachReasonToRunWithoutIsReported) {
    auto c = simulated(GraphMode::kFullDecodeOnly);
    c.engine.cudagraph_capture_sizes = {2, 1};
    const auto steps = steps_of(c, {{4, 2}, {4, 2}, {4, 2}});
    EXPECT_EQ(steps[0].graph.miss, "mixed_batch");
    EXPECT_EQ(steps[1].graph.miss, "too_large");
    EXPECT_EQ(steps_of(simulated(GraphMode::kNone), {{4, 1}})[0].graph.miss, "disabled");
    auto cpu = tiny_model();
    cpu.engine.cudagraph_mode = GraphMode::kFull;
    EXPECT_EQ(steps_of(cpu, {{4, 1}})[0].graph.miss, "device");
    auto unable = tiny_model();
    unable.device = {"replays", {}};
    unable.attention = {"replays", {{"graphs", "decode"}}};
    unable.engine.cudagraph_mode = GraphMode::kFull;
    const auto partly = steps_of(unable, {{4, 2}});
    EXPECT_EQ(partly[0].graph.miss, "unsupported_by_plugin");
    EXPECT_TRUE(partly[1].graph.replayed);
}

// ---- numbers ----

config::EngineConfig replaying(GraphMode mode, GraphCapture capture = GraphCapture::kEager) {
    auto c = tiny_model();
    c.device = {"replays", {}};
    c.attention = {"replays", {}};
    c.engine.num_blocks = 64;
    c.engine.max_num_seqs = 6;
    c.engine.max_num_batched_tokens = 40;
    c.engine.cudagraph_mode = mode;
    c.engine.cudagraph_capture = capture;
    return c;
}

struct Ran {
    Rows rows;
    std::map<RequestId, Output> outputs;
    std::vector<StepReport> steps;
};

// Nine requests of uneven lengths, more than run at once; prompts in chunks, equal prefixes, drawn and greedy tokens.
Ran run(const config::EngineConfig& c) {
    Recorded recorded(c);
    for (uint64_t i = 0; i < 9; ++i) {
        auto prompt = random_prompt(i / 2, 10 + static_cast<uint32_t>(i) * 7);
        recorded.harness->add(prompt, i % 2 ? seeded(i, 12) : greedy(9 + static_cast<uint32_t>(i)));
    }
    recorded.harness->run_all();
    return {recorded.rows(), recorded.harness->outputs, recorded.harness->steps};
}

void expect_same(const Ran& plain, const Ran& graphs) {
    ASSERT_EQ(plain.rows.size(), graphs.rows.size());
    for (const auto& [at, row] : plain.rows)
        EXPECT_EQ(row, graphs.rows.at(at)) << "request " << at.first << ", position " << at.second;
    for (const auto& [id, output] : plain.outputs) EXPECT_EQ(output.tokens, graphs.outputs.at(id).tokens) << id;
}

uint32_t replays(const Ran& ran) {
    uint32_t out = 0;
    for (const StepReport& r : ran.steps) out += r.graph.replayed;
    return out;
}

uint32_t preemptions(const Ran& ran) {
    uint32_t out = 0;
    for (const StepReport& r : ran.steps) out += r.preemption.preemptions;
    return out;
}

TEST(Graphs, ReplaysAndPaddingLeaveEveryLogitAsItIs) {
    const Ran plain = run(replaying(GraphMode::kNone));
    ASSERT_GT(plain.rows.size(), 100u);
    EXPECT_EQ(replays(plain), 0u);
    for (const GraphCapture capture : {GraphCapture::kEager, GraphCapture::kLazy}) {
        const Ran decode = run(replaying(GraphMode::kFullDecodeOnly, capture));
        EXPECT_GT(replays(decode), 5u);
        expect_same(plain, decode);
        const Ran full = run(replaying(GraphMode::kFull, capture));
        EXPECT_GT(replays(full), replays(decode));
        if (capture == GraphCapture::kEager) {
            EXPECT_EQ(replays(full), full.steps.size());
        }
        uint32_t padded = 0;
        for (const StepReport& r : full.steps) padded += r.graph.padded_tokens;
        EXPECT_GT(padded, 0u);
        expect_same(plain, full);
    }
}

// Few blocks: sequences are preempted, computed again and take other pages.
TEST(Graphs, ReplaysFollowSequencesThatMove) {
    auto c = replaying(GraphMode::kNone);
    c.engine.num_blocks = 24;
    c.engine.max_model_len = 100;
    c.engine.watermark = 0;
    const Ran plain = run(c);
    ASSERT_GT(preemptions(plain), 0u);
    c.engine.cudagraph_mode = GraphMode::kFull;
    const Ran graphs = run(c);
    EXPECT_GT(replays(graphs), 5u);
    EXPECT_GT(preemptions(graphs), 0u);
    expect_same(plain, graphs);
}

TEST(Graphs, VerifyDraftsAsStepsWithoutThemDo) {
    auto c = replaying(GraphMode::kNone);
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 3;
    const Ran plain = run(c);
    c.engine.cudagraph_mode = GraphMode::kFull;
    const Ran graphs = run(c);
    EXPECT_GT(replays(graphs), 5u);
    expect_same(plain, graphs);
}

}  // namespace
}  // namespace patchbay::engine::graphs_test
