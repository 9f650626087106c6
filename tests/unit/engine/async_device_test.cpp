// Steps in flight on a device that computes: `queues` begins with a step as late as it may, while the sampler's tokens
// stay with it. Texts are those of steps in turn with the sampler `standard`, on `replays`.
#include <gmock/gmock.h>

#include <numeric>

#include "engine/engine_control.hpp"
#include "host/probe.hpp"
#include "host/prober.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "paths.hpp"

namespace patchbay::engine::async_device_test {
namespace {

using namespace testing;
using config::AsyncScheduling;
using config::GraphCapture;
using config::GraphMode;
using ::testing::HasSubstr;

config::EngineConfig synchronous() {
    config::EngineConfig c = tiny_model();
    c.device = {"replays", {}};
    c.attention = {"replays", {}};
    c.sampler = {"standard", {}};
    c.engine.max_num_seqs = 5;
    c.engine.max_num_batched_tokens = 40;
    c.engine.max_model_len = 150;
    c.engine.watermark = 0;
    return c;
}

config::EngineConfig in_flight() {
    config::EngineConfig c = synchronous();
    c.device = {"queues", {}};
    c.sampler = {"replays", {}};
    c.engine.async_scheduling = AsyncScheduling::kOn;
    return c;
}

SamplingParams drawn(uint64_t seed, uint32_t max_tokens) {
    SamplingParams p = greedy(max_tokens);
    p.temperature = 0.8f;
    p.seed = seed;
    return p;
}

struct Ran {
    std::map<RequestId, Output> outputs;
    std::vector<StepReport> steps;
    uint32_t count(std::string_view reason) const {
        return static_cast<uint32_t>(
            std::count_if(steps.begin(), steps.end(), [&](const StepReport& r) { return r.sync_reason == reason; }));
    }
    uint32_t replayed() const {
        return static_cast<uint32_t>(
            std::count_if(steps.begin(), steps.end(), [](const StepReport& r) { return r.graph.replayed; }));
    }
};

// Chunks, equal prefixes, more requests than run at once; greedy and drawn, with a bias, tokens that may not come yet,
// tokens that stop, and log-probabilities.
Ran run(const config::EngineConfig& c) {
    Harness h(c);
    for (uint64_t i = 0; i < 12; ++i) {
        const uint32_t tokens = 5 + static_cast<uint32_t>(i) * 3;
        SamplingParams p = i % 3 ? drawn(i, tokens) : greedy(tokens);
        if (i % 4 == 1) p.logprobs = static_cast<int32_t>(i % 3);
        if (i % 4 == 2) p.logit_bias = {{7, 1.5f}, {200, -3}};
        if (i % 4 == 3) {
            p.stop_token_ids.resize(60);
            std::iota(p.stop_token_ids.begin(), p.stop_token_ids.end(), 100);
            p.min_tokens = 4;
        }
        h.add(random_prompt(i / 2, 10 + static_cast<uint32_t>(i) * 7), p);
    }
    h.run_all();
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    return {h.outputs, h.steps};
}

void expect_same(const std::map<RequestId, Output>& want, const std::map<RequestId, Output>& got) {
    ASSERT_EQ(want.size(), got.size());
    for (const auto& [id, output] : want) {
        EXPECT_EQ(output.tokens, got.at(id).tokens) << id;
        EXPECT_EQ(output.finish, got.at(id).finish) << id;
        ASSERT_EQ(output.logprobs.size(), got.at(id).logprobs.size()) << id;
        for (size_t i = 0; i < output.logprobs.size(); ++i) {
            EXPECT_EQ(output.logprobs[i].sampled, got.at(id).logprobs[i].sampled) << id << ", token " << i;
            EXPECT_EQ(output.logprobs[i].top, got.at(id).logprobs[i].top) << id << ", token " << i;
        }
    }
}

TEST(AsyncOnADevice, LeavesEveryTextAsItIs) {
    for (const uint32_t blocks : {512u, 30u}) {
        config::EngineConfig plain = synchronous(), overlapped = in_flight();
        plain.engine.num_blocks = overlapped.engine.num_blocks = blocks;
        const Ran want = run(plain);
        EXPECT_TRUE(std::any_of(want.outputs.begin(), want.outputs.end(),
                                [](const auto& o) { return o.second.finish == FinishReason::kStop; }));
        for (const char* late : {"true", "false"}) {
            overlapped.device.settings = {{"late", late}};
            const Ran got = run(overlapped);
            expect_same(want.outputs, got.outputs);
            EXPECT_GT(got.count(""), 20u);
            EXPECT_EQ(got.count("preemption") > 0, blocks == 30);
        }
    }
}

// Pages go to the host and come back while the host goes on, in order with what reads and writes them.
TEST(AsyncOnADevice, SwapsWithoutAChangeOfATextAndWithoutWaiting) {
    const Ran want = run(synchronous());
    config::EngineConfig c = in_flight();
    c.engine.num_blocks = 30;
    c.engine.preemption_mode = config::PreemptionMode::kSwap;
    c.engine.num_swap_blocks = 100;
    for (const char* late : {"true", "false"}) {
        c.device.settings = {{"late", late}};
        const Ran got = run(c);
        expect_same(want.outputs, got.outputs);
        uint32_t out = 0, in = 0;
        for (const StepReport& r : got.steps) out += r.preemption.pages_to_host, in += r.preemption.pages_to_device;
        EXPECT_GT(in, 0u);
        EXPECT_GE(out, in);
        EXPECT_GT(got.count(""), 20u);
    }
}

TEST(AsyncOnADevice, LeavesTextsAsTheyAreByGraphsToo) {
    const Ran want = run(synchronous());
    for (const GraphMode mode : {GraphMode::kFullDecodeOnly, GraphMode::kFull})
        for (const GraphCapture capture : {GraphCapture::kEager, GraphCapture::kLazy}) {
            config::EngineConfig c = in_flight();
            c.engine.cudagraph_mode = mode;
            c.engine.cudagraph_capture = capture;
            const Ran got = run(c);
            expect_same(want.outputs, got.outputs);
            EXPECT_GT(got.replayed(), 10u);
            EXPECT_GT(got.count(""), 20u);
        }
}

TEST(AsyncOnADevice, ItsSamplerGivesTheSameTextsInTurn) {
    const Ran want = run(synchronous());
    config::EngineConfig c = synchronous();
    c.sampler = {"replays", {}};
    expect_same(want.outputs, run(c).outputs); // on a device without steps in flight
    c.device = {"queues", {}};
    const Ran off = run(c);
    expect_same(want.outputs, off.outputs);
    EXPECT_EQ(off.count("off"), off.steps.size());
}

struct Sums : host::MetricSink {
    void add(const std::string&, const std::string& component, const std::string& name, double amount) override {
        values[component + " " + name] += amount;
    }
    void set(const std::string&, const std::string&, const std::string&, double) override {}
    std::map<std::string, double> values;
};

TEST(AsyncOnADevice, PlansAStepBeforeTheOneBeforeHasBegun) {
    Sums sums;
    VirtualClock clock;
    const auto made = Engine::create(in_flight(), registry(), clock, &sums);
    ASSERT_TRUE(made) << made.error();
    Request r;
    r.prompt = random_prompt(1, 4);
    r.sampling = greedy(20);
    ASSERT_TRUE((*made)->add_request(std::move(r)));
    while ((*made)->has_unfinished()) ASSERT_TRUE((*made)->step());
    EXPECT_EQ(sums.values["queues overlapped_steps"], 19) << "all but the first";
}

TEST(AsyncOnADevice, DropsTheTokenAfterAStopAndKeepsItsBlocksUntilThen) {
    Harness h(in_flight());
    SamplingParams p = greedy(20);
    p.stop_token_ids.resize(300);
    std::iota(p.stop_token_ids.begin(), p.stop_token_ids.end(), 0); // whatever comes, it stops
    const RequestId stops = h.add(random_prompt(1, 8), p), stays = h.add(random_prompt(2, 8), drawn(3, 9));
    h.step();
    const StepReport second = h.step();
    EXPECT_EQ(h.outputs.at(stops).finish, FinishReason::kStop);
    EXPECT_EQ(second.work.scheduled_tokens, 2u) << "its placeholder is on the device";
    EXPECT_EQ(second.kv.used_pages, 4u) << "which may still write into its blocks";
    EXPECT_EQ(h.step().kv.used_pages, 2u);
    EXPECT_EQ(h.outputs.at(stops).tokens.size(), 1u);
    h.run_all();
    Harness alone(synchronous());
    EXPECT_EQ(h.outputs.at(stays).tokens, alone.run(alone.add(random_prompt(2, 8), drawn(3, 9))).tokens);
}

TEST(AsyncOnADevice, AnAbortLeavesOthersAndTheirRowsAlone) {
    Harness alone(synchronous());
    const auto text = alone.run(alone.add(random_prompt(2, 20), drawn(7, 12))).tokens;
    Harness h(in_flight());
    const RequestId gone = h.add(random_prompt(1, 20), greedy(50)), stays = h.add(random_prompt(2, 20), drawn(7, 12));
    for (int i = 0; i < 3; ++i) h.step();
    h.engine->abort(gone);
    EXPECT_EQ(h.outputs.at(gone).finish, FinishReason::kAbort);
    EXPECT_EQ(h.run(stays).tokens, text) << "the row before its own has left the flight";
    h.run_all();
    EXPECT_EQ(h.step().kv.used_pages, 0u);
}

TEST(AsyncOnADevice, WaitsForTokensThatPenaltiesLookAt) {
    const auto penalised = [](config::EngineConfig c) {
        Harness h(c);
        SamplingParams p = drawn(5, 15);
        p.repetition_penalty = 1.3f;
        p.frequency_penalty = 0.5f;
        h.add(random_prompt(1, 12), p);
        h.add(random_prompt(2, 12), drawn(6, 25)); // goes on in flight when the other has ended
        h.run_all();
        return Ran{h.outputs, h.steps};
    };
    const Ran want = penalised(synchronous()), got = penalised(in_flight());
    expect_same(want.outputs, got.outputs);
    EXPECT_EQ(got.count("history"), 14u) << "each of its tokens but the first";
    EXPECT_GT(got.count(""), 8u);
}

TEST(AsyncOnADevice, SaysWhyStepsComeInTurn) {
    const auto reason = [](const config::EngineConfig& c) {
        Harness h(c);
        h.add(random_prompt(1, 4), greedy(1));
        return std::string(h.step().sync_reason);
    };
    config::EngineConfig c = in_flight();
    EXPECT_EQ(reason(c), "");
    c.engine.async_scheduling = AsyncScheduling::kAuto;
    c.sampler = {"standard", {}};
    EXPECT_EQ(reason(c), "host_sampler");
    c.sampler = {"replays", {}};
    c.device = {"replays", {}};
    EXPECT_EQ(reason(c), "device") << "it has no submit_step()";
    c.device = {"queues", {}};
    c.engine.async_scheduling = AsyncScheduling::kOn;
    c.sampler = {"standard", {}};
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("must be back before the next is planned: host_sampler"));
}

// A sampler takes the slot after four steps; texts are those without.
Ran swapped(config::EngineConfig c, const config::PluginChoice& to) {
    static host::Prober prober(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    c.swap.probation_steps = 3;
    c.engine.max_num_batched_tokens = 200;
    Harness h(c);
    for (uint64_t i = 0; i < 3; ++i) h.add(random_prompt(i, 45), drawn(i, 20));
    for (int i = 0; i < 4; ++i) h.step();
    const auto swap = h.engine->control().swap({SwapSlot::kSampler, to, registry(), prober});
    h.run_all();
    const Ran ran{h.outputs, h.steps};
    Harness plain(synchronous());
    for (uint64_t i = 0; i < 3; ++i) plain.add(random_prompt(i, 45), drawn(i, 20));
    expect_same(plain.run_all(), ran.outputs);
    return ran;
}

TEST(AsyncOnADevice, ASamplerOnTheHostMayTakeTheSlot) {
    const Ran ran = swapped(in_flight(), {"standard", {}});
    EXPECT_EQ(ran.count(""), 4u);
    EXPECT_EQ(ran.count("probation"), 3u);
    EXPECT_GT(ran.count("host_sampler"), 8u);
}

TEST(AsyncOnADevice, OneOnTheDeviceMayTakeItFromTheHost) {
    config::EngineConfig c = in_flight();
    c.engine.async_scheduling = AsyncScheduling::kAuto;
    c.sampler = {"standard", {}};
    const Ran ran = swapped(c, {"replays", {}});
    EXPECT_EQ(ran.count("host_sampler"), 4u);
    EXPECT_EQ(ran.count("probation"), 3u);
    EXPECT_GT(ran.count(""), 8u);
}

TEST(AsyncOnADevice, OneThatFailsThereLeavesItsStepToThePredecessor) {
    for (const char* before : {"standard", "replays"}) {
        config::EngineConfig c = in_flight();
        c.engine.async_scheduling = AsyncScheduling::kAuto;
        c.sampler = {before, {}};
        const Ran ran = swapped(c, {"replays", {{"fails_at", "50"}}});
        const bool back = std::any_of(ran.steps.begin(), ran.steps.end(), [](const StepReport& r) {
            return std::any_of(r.swaps.begin(), r.swaps.end(), [](const host::SwapRecord& record) {
                return record.state == host::SwapState::kRolledBack;
            });
        });
        EXPECT_TRUE(back) << before;
    }
}

TEST(AsyncOnADevice, OneOfAnotherDeviceIsRefusedTheSlot) {
    static host::Prober prober(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    Harness h(tiny_model()); // on the CPU
    const auto swap = h.engine->control().swap({SwapSlot::kSampler, {"replays", {}}, registry(), prober});
    EXPECT_EQ(swap->record().state, host::SwapState::kRefused);
    EXPECT_THAT(swap->record().text(), HasSubstr("runs on device 'replays', and the model on 'cpu'"));
}

TEST(AsyncOnADevice, ASamplerOfAnotherDeviceIsRefused) {
    config::EngineConfig c = tiny_model();
    c.sampler = {"replays", {}};
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error(), "sampler 'replays' runs on device 'replays', and the model on 'cpu' (choose standard, "
                            "which runs beside any)");
}

// The next step has taken the token before the host could see it; a part of a prompt is computed in it, too.
TEST(AsyncOnADevice, ARequestWhoseTokenIsNoneFailsAlone) {
    for (const char* token : {"300", "-1"})
        for (const GraphMode mode : {GraphMode::kNone, GraphMode::kFull}) {
            config::EngineConfig plain = synchronous(), c = in_flight();
            plain.engine.enable_prefix_caching = c.engine.enable_prefix_caching = true;
            c.engine.cudagraph_mode = mode;
            c.sampler.settings = {{"wrong_at", "33"}, {"wrong_token", token}};
            Harness h(c), alone(plain);
            const RequestId wrong = h.add(random_prompt(1, 30), drawn(1, 20));
            const RequestId others[] = {h.add(random_prompt(2, 34), drawn(2, 20)),
                                        h.add(random_prompt(3, 140), greedy(9))};
            for (int i = 0; h.outputs[wrong].finish == FinishReason::kNone; ++i) ASSERT_LT(h.step().step, 50u);
            EXPECT_EQ(h.outputs.at(wrong).finish, FinishReason::kError);
            EXPECT_EQ(h.outputs.at(wrong).tokens.size(), 3u);
            const RequestId after = h.add(random_prompt(3, 140), greedy(9)); // may share what the others computed
            h.run_all();
            EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
            EXPECT_EQ(h.outputs.at(others[0]).tokens, alone.run(alone.add(random_prompt(2, 34), drawn(2, 20))).tokens);
            const auto text = alone.run(alone.add(random_prompt(3, 140), greedy(9))).tokens;
            EXPECT_EQ(h.outputs.at(others[1]).tokens, text);
            EXPECT_EQ(h.outputs.at(after).tokens, text);
            EXPECT_EQ(h.outputs.at(others[0]).finish, FinishReason::kLength);
        }
}

TEST(AsyncOnADevice, WhatAPoisonedStepMadeOfAnAbortedPromptIsNotShared) {
    config::EngineConfig plain = synchronous(), c = in_flight();
    plain.engine.enable_prefix_caching = c.engine.enable_prefix_caching = true;
    c.sampler.settings = {{"wrong_at", "33"}, {"wrong_token", "300"}};
    Harness h(c), alone(plain);
    const RequestId wrong = h.add(random_prompt(1, 30), drawn(1, 20)), gone = h.add(random_prompt(3, 145), greedy(4));
    for (int i = 0; h.outputs[wrong].finish == FinishReason::kNone; ++i) ASSERT_LT(h.step().step, 50u);
    ASSERT_EQ(h.outputs[wrong].finish, FinishReason::kError);
    ASSERT_GT(h.steps.back().work.prefill_tokens, 0u)
        << "the step that was given its token computes part of the prompt";
    h.engine->abort(gone);
    const RequestId after = h.add(random_prompt(3, 145), greedy(4));
    h.run_all();
    EXPECT_EQ(h.outputs.at(after).tokens, alone.run(alone.add(random_prompt(3, 145), greedy(4))).tokens);
}

TEST(AsyncOnADevice, AFailureWithAStepInFlightEndsAllRequestsAndNothingHangs) {
    config::EngineConfig c = in_flight();
    c.sampler.settings = {{"fails_at", "9"}};
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_TRUE(made) << made.error();
    FinishReason finish = FinishReason::kNone;
    Request r;
    r.prompt = random_prompt(1, 4);
    r.sampling = greedy(20);
    r.on_output = [&](const RequestOutput& o) { finish = o.finish; };
    ASSERT_TRUE((*made)->add_request(std::move(r)));
    Result<> failed;
    while ((*made)->has_unfinished() && failed)
        if (const auto step = (*made)->step(); !step) failed = fail(step.error());
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error(), HasSubstr("sampler 'replays': plan: fails on purpose"));
    EXPECT_EQ(finish, FinishReason::kError);
    EXPECT_FALSE((*made)->has_unfinished());
}

}  // namespace
}  // namespace patchbay::engine::async_device_test
