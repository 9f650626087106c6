// Preemption that swaps: the same texts as with recomputing and as without preemption, whatever a sequence keeps; what
// happens when there is no room, and how `auto` chooses.
#include <gmock/gmock.h>

#include "engine/placement/token_cost.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing::swap_preemption_test {
namespace {

using config::AsyncScheduling;
using config::PreemptionMode;

struct Ran {
    std::map<RequestId, Output> outputs;
    std::map<std::pair<RequestId, uint32_t>, Output> others;
    uint64_t preemptions = 0, preempted_tokens = 0, out = 0, in = 0, pages_out = 0, pages_in = 0, accepted = 0;
    std::array<uint64_t, kSwapFallbacks> fallbacks{};
};

// Greedy and seeded in turn, equal prefixes, several lengths.
Ran run(const config::EngineConfig& c, uint32_t vocab = 300, uint32_t n = 1) {
    Harness h(c);
    for (uint64_t i = 0; i < 9; ++i) {
        const auto length = static_cast<uint32_t>(12 + i * 7 % 40);
        SamplingParams p = i % 2 || n > 1 ? seeded(i, 30) : greedy(30);
        p.n = n;
        if (i % 4 == 3) p.repetition_penalty = 1.2f;
        h.add(random_prompt(i / 2, length, vocab), p);
    }
    h.run_all();
    Ran out{h.outputs, h.others};
    for (const StepReport& s : h.steps) {
        out.preemptions += s.preemption.preemptions;
        out.preempted_tokens += s.preemption.preempted_tokens;
        out.out += s.preemption.swapped_out;
        out.in += s.preemption.swapped_in;
        out.pages_out += s.preemption.pages_to_host;
        out.pages_in += s.preemption.pages_to_device;
        out.accepted += s.drafts.accepted_tokens;
        for (size_t i = 0; i < kSwapFallbacks; ++i) out.fallbacks[i] += s.preemption.swap_fallbacks[i];
    }
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    EXPECT_EQ(h.steps.back().preemption.used_swap_pages, 0u);
    return out;
}

void expect_same_texts(const Ran& want, const Ran& got, const std::string& what) {
    for (const auto& [id, o] : want.outputs) EXPECT_EQ(o.tokens, got.outputs.at(id).tokens) << what << ": " << id;
    for (const auto& [id, o] : want.others) EXPECT_EQ(o.tokens, got.others.at(id).tokens) << what << ": " << id.first;
}

config::EngineConfig scarce(config::EngineConfig c, uint32_t pages) {
    c.engine.num_blocks = pages;
    c.engine.max_model_len = 96;
    c.engine.watermark = 0;
    return c;
}

config::EngineConfig swapping(config::EngineConfig c, uint32_t slots = 2000) {
    c.engine.preemption_mode = PreemptionMode::kSwap;
    c.engine.num_swap_blocks = slots;
    return c;
}

void expect_swaps_change_no_text(const config::EngineConfig& c, uint32_t pages, const std::string& what,
                                 uint32_t vocab = 300, uint32_t n = 1) {
    const Ran free = run(c, vocab, n), recomputed = run(scarce(c, pages), vocab, n),
              swapped = run(swapping(scarce(c, pages)), vocab, n);
    EXPECT_EQ(free.preemptions, 0u) << what;
    EXPECT_GT(recomputed.preempted_tokens, 0u) << what;
    expect_same_texts(free, recomputed, what);
    expect_same_texts(free, swapped, what);
    EXPECT_GT(swapped.in, 0u) << what;
    EXPECT_EQ(swapped.preempted_tokens, 0u) << what << ": something was thrown away";
    EXPECT_GT(swapped.pages_in, 0u) << what;
    EXPECT_GE(swapped.pages_out, swapped.pages_in) << what;
}

config::EngineConfig uncached() {
    auto c = tiny_model();
    c.engine.enable_prefix_caching = false;
    return c;
}

TEST(SwapPreemption, ChangesNoText) {
    expect_swaps_change_no_text(tiny_model(), 20, "with a prefix cache");
    expect_swaps_change_no_text(uncached(), 20, "without one");
    auto c = uncached();
    c.engine.max_num_batched_tokens = 13;
    expect_swaps_change_no_text(c, 20, "in chunks");
}

TEST(SwapPreemption, ChangesNoTextOfSeveralOutputsOfAPrompt) {
    expect_swaps_change_no_text(tiny_model(), 20, "with a prefix cache", 300, 3);
    expect_swaps_change_no_text(uncached(), 20, "without one", 300, 3);
}

TEST(SwapPreemption, ChangesNoTextWithDrafts) {
    auto c = uncached();
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 3;
    expect_swaps_change_no_text(c, 22, "ngram");
    c = tiny_model();
    c.model = {};
    c.model.path = repository("models/demo-target");
    c.proposer = config::PluginChoice{"draft_model", {{"model", repository("models/demo-draft")}}};
    c.engine.num_speculative_tokens = 3;
    c.engine.num_blocks = 1024;
    expect_swaps_change_no_text(c, 200, "a draft model", 2048);
    EXPECT_GT(run(swapping(scarce(c, 200)), 2048).accepted, 0u);
}

// A state goes on from where it was; nothing else could, but from the beginning.
TEST(SwapPreemption, KeepsStatesAndWindows) {
    auto c = uncached();
    c.model.load_format = config::LoadFormat::kAuto;
    c.model.path = repository("tests/golden/models/bamba");
    c.model.shape.clear();
    expect_swaps_change_no_text(c, 40, "states", 128);
    c = uncached();
    c.model.shape["architectures.0"] = "Gemma2ForCausalLM";
    c.model.shape["head_dim"] = "16";
    c.model.shape["num_hidden_layers"] = "3";
    c.model.shape["sliding_window"] = "16";
    c.engine.num_blocks = 1024;
    expect_swaps_change_no_text(c, 45, "windows");
}

TEST(SwapPreemption, RecomputesWhereTheSwapSpaceIsFull) {
    const Ran want = run(uncached()), got = run(swapping(scarce(uncached(), 20), 5));
    expect_same_texts(want, got, "5 slots");
    EXPECT_GT(got.fallbacks[static_cast<size_t>(SwapFallback::kFull)], 0u);
    EXPECT_GT(got.preempted_tokens, 0u);
    EXPECT_GT(got.in, 0u);
    EXPECT_EQ(got.preemptions, got.out + got.fallbacks[static_cast<size_t>(SwapFallback::kFull)]);
}

// A device whose link to the host has so many bytes a second.
config::EngineConfig simulated(const char* host_bandwidth) {
    auto c = uncached();
    c.model.dtype = config::DType::kBf16;
    c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e9"},
                        {"memory_bytes", "100000000"}, {"host_bandwidth", host_bandwidth}}};
    c.engine.preemption_mode = PreemptionMode::kAuto;
    c.engine.num_swap_blocks = 1000;
    return scarce(c, 20);
}

TEST(SwapPreemption, AutoTakesWhatIsCheaper) {
    const Ran near = run(simulated("1e9")), far = run(simulated("1e4"));
    EXPECT_GT(near.in, 0u);
    EXPECT_EQ(near.preempted_tokens, 0u);
    EXPECT_EQ(far.in, 0u);
    EXPECT_GT(far.preempted_tokens, 0u);
    EXPECT_EQ(far.fallbacks[static_cast<size_t>(SwapFallback::kDearer)], far.preemptions);
    expect_same_texts(near, far, "tokens are a pure function of the seed");
    for (const auto mode : {AsyncScheduling::kOff, AsyncScheduling::kOn}) {
        auto c = simulated("1e9");
        c.engine.async_scheduling = mode;
        EXPECT_GT(run(c).in, 0u);
    }
}

TEST(SwapPreemption, TakesTheTimeOfTheLink) {
    const auto seconds = [](const char* bandwidth) {
        auto c = simulated(bandwidth);
        c.engine.preemption_mode = PreemptionMode::kSwap;
        Harness h(c);
        for (uint64_t i = 0; i < 9; ++i) h.add(random_prompt(i, 30), greedy(30));
        h.run_all();
        uint64_t pages = 0;
        for (const StepReport& s : h.steps) pages += s.preemption.pages_to_host + s.preemption.pages_to_device;
        return std::pair(static_cast<double>(h.clock.now_ns()), static_cast<double>(pages));
    };
    const auto [fast, pages] = seconds("1e12");
    const auto [slow, same_pages] = seconds("1e6");
    EXPECT_EQ(pages, same_pages);
    const double page_bytes = Harness(simulated("1e6")).engine->facts().kv.page_bytes;
    EXPECT_NEAR(slow - fast, pages * page_bytes * (1e3 - 1e-3), pages * 2);
}

// The policy may ask, and is heard in `auto` whatever it costs.
TEST(SwapPreemption, APolicyMayAskForIt) {
    auto c = simulated("1e4");
    c.engine.num_blocks = 512;
    c.scheduler = {"fails_on_request", {{"swaps", "true"}}};
    const Ran got = run(c);
    EXPECT_GT(got.in, 20u);
    EXPECT_EQ(got.preempted_tokens, 0u);
    c.engine.preemption_mode = PreemptionMode::kRecompute; // the host decides
    const Ran refused = run(c);
    EXPECT_EQ(refused.in, 0u);
    expect_same_texts(got, refused, "asked and refused");
}

TEST(TokenCost, IsTheSlopeAndNotWhatEveryStepTakes) {
    TokenCost cost;
    EXPECT_FALSE(cost.is_measured());
    for (int i = 0; i < 50; ++i) cost.step(100, 1'000'000);
    EXPECT_DOUBLE_EQ(cost.ns_a_token(), 10'000) << "steps of one size tell no slope";
    for (uint32_t i = 0; i < 1500; ++i) cost.step(8 + i % 100, 5'000'000 + 700 * (8 + i % 100));
    EXPECT_NEAR(cost.ns_a_token(), 700, 30);
    for (uint32_t i = 0; i < 2000; ++i) cost.step(8 + i % 100, 5'000'000 + 90 * (8 + i % 100));
    EXPECT_NEAR(cost.ns_a_token(), 90, 10) << "late steps weigh more";
}

}  // namespace
}  // namespace patchbay::engine::testing::swap_preemption_test
