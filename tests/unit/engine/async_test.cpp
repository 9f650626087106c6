// Steps in flight, on the device `sim`: what they hide to the nanosecond, that texts stay as they are, and that blocks
// come back when nothing on the device can touch them any more.
#include <gmock/gmock.h>

#include <numeric>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::async_test {
namespace {

using namespace testing;
using config::AsyncScheduling;
using ::testing::HasSubstr;

// tiny_model() in bf16 on hardware that multiplies at 1 FLOP a nanosecond and starts an op in 1,000 ns.
config::EngineConfig simulated(AsyncScheduling async, uint64_t host_ns) {
    config::EngineConfig c = tiny_model();
    c.model.dtype = config::DType::kBf16;
    c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e21"},
                        {"memory_bytes", "100000000"}, {"launch_ns", "1000"},
                        {"step_overhead_ns", std::to_string(host_ns)}}};
    c.engine.async_scheduling = async;
    return c;
}

// When each token of a request of 4 prompt tokens came, from its arrival on.
std::vector<uint64_t> token_times(const config::EngineConfig& c, uint32_t tokens) {
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    if (!made) throw std::runtime_error(made.error());
    const uint64_t begin = clock.now_ns();
    std::vector<uint64_t> out;
    Request r;
    r.prompt = random_prompt(1, 4);
    r.sampling.max_tokens = tokens;
    r.on_output = [&](const RequestOutput& o) { out.resize(out.size() + o.tokens.size(), o.time_ns - begin); };
    if (const auto id = (*made)->add_request(std::move(r)); !id) throw std::runtime_error(id.error());
    while ((*made)->has_unfinished())
        if (const auto report = (*made)->step(); !report) throw std::runtime_error(report.error());
    return out;
}

// As in simulation_test.cpp: 122,880 FLOP a token, 38,400 where it has logits, 512 for each key that it sees, 27 ops.
constexpr uint64_t kPrompt = 4 * 122'880 + 38'400 + 512 * 10 + 27'000;
constexpr uint64_t decode(uint64_t keys) { return 122'880 + 38'400 + 512 * keys + 27'000; }
constexpr uint64_t kTake = 1'000; // fill_placeholders, after a step in flight

TEST(AsyncScheduling, HidesTheHostWhileTheDeviceComputes) {
    constexpr uint64_t kHost = 100'000; // less than any step
    EXPECT_EQ(token_times(simulated(AsyncScheduling::kOff, kHost), 3),
              (std::vector<uint64_t>{kHost + kPrompt, 2 * kHost + kPrompt + decode(5),
                                     3 * kHost + kPrompt + decode(5) + decode(6)}));
    EXPECT_EQ(token_times(simulated(AsyncScheduling::kAuto, kHost), 3),
              (std::vector<uint64_t>{kHost + kPrompt, kHost + kPrompt + decode(5) + kTake,
                                     kHost + kPrompt + decode(5) + decode(6) + 2 * kTake}))
        << "the device never waits: only the first step has a host before it";
}

TEST(AsyncScheduling, HidesTheDeviceWhileASlowerHostWorks) {
    constexpr uint64_t kHost = 1'000'000;
    const auto times = token_times(simulated(AsyncScheduling::kAuto, kHost), 4);
    // A token is handed out when the host has prepared the next step; the last one as soon as it is there.
    EXPECT_EQ(times, (std::vector<uint64_t>{2 * kHost, 3 * kHost, 4 * kHost, 4 * kHost + decode(7) + kTake}));
}

TEST(AsyncScheduling, TakesOneOpToPutTokensInPlace) {
    std::vector<uint64_t> expected = token_times(simulated(AsyncScheduling::kOff, 0), 5);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += i * kTake;
    EXPECT_EQ(token_times(simulated(AsyncScheduling::kAuto, 0), 5), expected);
}

// As on GPUs. The ranks of a simulation are one that is charged.
TEST(AsyncScheduling, StepsOfSeveralRanksDoNotOverlap) {
    const auto on_two = [](AsyncScheduling async) {
        auto c = simulated(async, 1'000'000);
        c.engine.tensor_parallel_size = 2;
        c.device.settings["collective_latency_ns"] = "100";
        c.device.settings["collective_bandwidth"] = "1e9";
        return c;
    };
    EXPECT_EQ(token_times(on_two(AsyncScheduling::kAuto), 4), token_times(on_two(AsyncScheduling::kOff), 4));
    VirtualClock clock;
    const auto made = Engine::create(on_two(AsyncScheduling::kOn), registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("ranks"));
}

std::map<RequestId, Output> texts(const config::EngineConfig& c, std::vector<StepReport>* steps = nullptr) {
    Harness h(c);
    for (uint64_t i = 0; i < 12; ++i)
        h.add(random_prompt(i / 2, 10 + static_cast<uint32_t>(i) * 7), seeded(i, 5 + static_cast<uint32_t>(i) * 3));
    h.run_all();
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    if (steps) *steps = h.steps;
    return h.outputs;
}

// Chunks, equal prefixes, more requests than run at once, and too few blocks for those that do.
TEST(AsyncScheduling, LeavesEveryTextAsItIs) {
    for (const uint32_t blocks : {512u, 30u}) {
        auto c = simulated(AsyncScheduling::kOff, 50'000);
        c.engine.max_num_seqs = 5;
        c.engine.max_num_batched_tokens = 40;
        c.engine.num_blocks = blocks;
        c.engine.max_model_len = 150;
        c.engine.watermark = 0;
        const auto without_overlap = texts(c);
        c.engine.async_scheduling = AsyncScheduling::kOn;
        std::vector<StepReport> steps;
        const auto overlapped = texts(c, &steps);
        uint32_t preemptions = 0, deep = 0, waited = 0;
        for (const StepReport& r : steps) {
            preemptions += r.preemption.preemptions;
            deep += r.sync_reason.empty();
            waited += r.sync_reason == "preemption";
        }
        EXPECT_GT(deep, 20u);
        EXPECT_EQ(preemptions > 0, blocks == 30) << preemptions;
        EXPECT_EQ(waited > 0, preemptions > 0) << "a preempted sequence was not collected first";
        for (const auto& [id, output] : without_overlap) {
            EXPECT_EQ(output.tokens, overlapped.at(id).tokens) << id;
            EXPECT_EQ(output.finish, overlapped.at(id).finish) << id;
        }
    }
}

TEST(AsyncScheduling, PlansNoTokenForOneThatIsAboutToEnd) {
    Harness h(simulated(AsyncScheduling::kOn, 0));
    h.add(random_prompt(1, 4), greedy(3));
    h.run_all();
    uint32_t computed = 0;
    for (const StepReport& r : h.steps) computed += r.work.scheduled_tokens;
    EXPECT_EQ(computed, 4u + 2);
}

TEST(AsyncScheduling, DropsTheTokenAfterAStopAndKeepsItsBlocksUntilThen) {
    Harness h(simulated(AsyncScheduling::kOn, 0));
    SamplingParams p = greedy(20);
    p.stop_token_ids.resize(300);
    std::iota(p.stop_token_ids.begin(), p.stop_token_ids.end(), 0); // whatever comes, it stops
    const RequestId stops = h.add(random_prompt(1, 8), p); // a block of 8; its next token needs another
    const StepReport first = h.step();
    EXPECT_EQ(first.work.sampled_tokens, 0u) << "nothing is back";
    EXPECT_EQ(first.kv.used_pages, 1u);
    const StepReport second = h.step();
    EXPECT_EQ(second.work.scheduled_tokens, 1u) << "a placeholder";
    EXPECT_EQ(second.work.sampled_tokens, 1u);
    EXPECT_EQ(h.outputs.at(stops).finish, FinishReason::kStop);
    EXPECT_EQ(second.kv.used_pages, 2u) << "the device may still write into them";
    EXPECT_TRUE(h.engine->has_unfinished());
    const StepReport third = h.step();
    EXPECT_EQ(third.work.sampled_tokens, 0u);
    EXPECT_EQ(third.kv.used_pages, 0u);
    EXPECT_FALSE(h.engine->has_unfinished());
    EXPECT_EQ(h.outputs.at(stops).tokens.size(), 1u);
}

TEST(AsyncScheduling, AnAbortLeavesOthersAndTheBlocksInFlightAlone) {
    const auto c = simulated(AsyncScheduling::kOn, 0);
    Harness alone(c);
    const auto text = alone.run(alone.add(random_prompt(2, 20), seeded(7, 12))).tokens;
    Harness h(c);
    const RequestId gone = h.add(random_prompt(1, 20), greedy(50)), stays = h.add(random_prompt(2, 20), seeded(7, 12));
    for (int i = 0; i < 3; ++i) h.step();
    const uint32_t made = static_cast<uint32_t>(h.outputs.at(gone).tokens.size());
    h.engine->abort(gone);
    EXPECT_EQ(h.outputs.at(gone).finish, FinishReason::kAbort);
    EXPECT_EQ(h.outputs.at(gone).tokens.size(), made) << "what is in flight is not handed out";
    EXPECT_EQ(h.run(stays).tokens, text);
    EXPECT_EQ(h.run_all().size(), 2u);
    EXPECT_EQ(h.step().kv.used_pages, 0u);
}

TEST(AsyncScheduling, SaysWhyStepsComeInTurn) {
    const auto reason = [](const config::EngineConfig& c) {
        Harness h(c);
        h.add(random_prompt(1, 4), greedy(1));
        return std::string(h.step().sync_reason);
    };
    EXPECT_EQ(reason(simulated(AsyncScheduling::kOff, 0)), "off");
    EXPECT_EQ(reason(simulated(AsyncScheduling::kAuto, 0)), "");
    auto cpu = tiny_model();
    cpu.engine.async_scheduling = AsyncScheduling::kAuto;
    EXPECT_EQ(reason(cpu), "device");
    cpu.engine.async_scheduling = AsyncScheduling::kOn;
    VirtualClock clock;
    const auto made = Engine::create(cpu, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("async_scheduling: on, but steps must be back"));
}

}  // namespace
}  // namespace patchbay::engine::async_test
