// Far too few blocks for what is asked, on a device that computes: each text is that of the request run alone.
#include <gmock/gmock.h>

#include "patchbay/sdk/philox.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing {
namespace {

constexpr uint32_t kRequests = 500;

config::EngineConfig small_model() {
    config::EngineConfig c = tiny_model();
    c.model.shape["hidden_size"] = "32";
    c.model.shape["intermediate_size"] = "32";
    c.model.shape["num_hidden_layers"] = "1";
    c.model.shape["num_attention_heads"] = "2";
    c.model.shape["num_key_value_heads"] = "1";
    c.engine.enable_prefix_caching = false;
    return c;
}

struct Case {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
    int32_t priority = 0;
    uint32_t abort_at = 0; // step; 0: never
};

std::vector<Case> load() {
    std::vector<Case> out(kRequests);
    for (uint32_t i = 0; i < kRequests; ++i) {
        auto next = [&, at = 0u](uint32_t n) mutable { return draw(i, 7, Stream::kTest, at++)[0] % n; };
        Case& c = out[i];
        c.prompt = random_prompt(next(5) == 0 ? 3 : i, 1 + next(40)); // some begin alike
        c.sampling = next(2) ? seeded(i * 10, 1 + next(24)) : greedy(1 + next(24));
        if (c.sampling.temperature > 0 && next(4) == 0) c.sampling.n = 2 + next(3);
        if (c.sampling.temperature > 0 && next(6) == 0) c.sampling.mirostat = 2;
        if (next(6) == 0) c.sampling.repetition_penalty = 1.3f;
        c.priority = static_cast<int32_t>(next(4));
        if (next(10) == 0) c.abort_at = 1 + next(600);
    }
    return out;
}

using Texts = std::map<std::pair<uint32_t, uint32_t>, std::vector<TokenId>>; // by case and index

const Texts& alone() {
    static const Texts all = [] {
        Texts out;
        Harness h(small_model());
        const auto cases = load();
        for (uint32_t i = 0; i < kRequests; ++i)
            for (uint32_t k = 0; k < cases[i].sampling.n; ++k) {
                SamplingParams p = cases[i].sampling;
                p.n = 1;
                if (p.seed) p.seed = *p.seed + k;
                out[{i, k}] = h.run(h.add(cases[i].prompt, p)).tokens;
            }
        return out;
    }();
    return all;
}

const host::Registry& with_faulty() {
    static const auto all = host::Registry::open({std::string(PATCHBAY_BINARY_DIR) + "/tests/swap_plugins"});
    if (!all) throw std::runtime_error(all.error());
    return *all;
}

// To samplers that fail on probation: what they leave undone another does.
void swap_sampler(Harness& h, uint32_t step) {
    static host::Prober prober(host::ProbeOptions{.program = PATCHBAY_BINARY_DIR "/bin/patchbay-probe"});
    if (step % 25 > 0 || step > 500) return;
    const config::PluginChoice to{"faulty", {{"fault", step % 50 ? "throws" : "negative"}, {"vocab", "300"}}};
    const auto swap = h.engine->swap({SwapSlot::kSampler, to, with_faulty(), prober});
    EXPECT_NE(swap->record().state, host::SwapState::kRefused) << swap->record().text();
}

struct Pressed {
    const char* name;
    void (*change)(config::EngineConfig&);
    void (*between)(Harness&, uint32_t step) = [](Harness&, uint32_t) {};
};
void PrintTo(const Pressed& p, std::ostream* out) { *out << p.name; }

void swaps(config::EngineConfig& c) {
    c.engine.preemption_mode = config::PreemptionMode::kSwap;
    c.engine.num_swap_blocks = 30; // full now and then
}

class UnderPressure : public ::testing::TestWithParam<Pressed> {};

TEST_P(UnderPressure, EveryTextIsThatOfTheRequestAlone) {
    config::EngineConfig c = small_model();
    c.engine.num_blocks = 22; // the longest request takes 9
    c.engine.max_model_len = 72;
    c.engine.max_num_seqs = 12;
    c.engine.max_num_batched_tokens = 64;
    c.engine.watermark = 0;
    GetParam().change(c);
    Harness h(c);
    const auto cases = load();
    std::vector<RequestId> ids;
    for (const Case& one : cases) {
        Request r;
        r.prompt = one.prompt;
        r.sampling = one.sampling;
        r.priority = one.priority;
        ids.push_back(h.add(std::move(r)));
    }
    uint64_t preemptions = 0;
    for (uint32_t step = 1; h.engine->has_unfinished(); ++step) {
        ASSERT_LT(step, 20'000u) << "somebody starves";
        for (uint32_t i = 0; i < kRequests; ++i)
            if (cases[i].abort_at == step) h.engine->abort(ids[i]);
        GetParam().between(h, step);
        preemptions += h.step().preemptions;
        const auto sound = h.engine->audit();
        ASSERT_TRUE(sound) << "step " << step << ": " << sound.error();
    }
    EXPECT_GT(preemptions, 100u);
    EXPECT_EQ(h.engine->view().free_blocks, c.engine.num_blocks);
    uint32_t aborted = 0;
    for (uint32_t i = 0; i < kRequests; ++i)
        for (uint32_t k = 0; k < cases[i].sampling.n; ++k) {
            const Output& got = k == 0 ? h.outputs.at(ids[i]) : h.others.at({ids[i], k});
            std::vector<TokenId> expected = alone().at({i, k});
            ASSERT_EQ(got.endings, 1u) << i << ", output " << k;
            if (got.finish == FinishReason::kAbort) {
                ASSERT_GT(cases[i].abort_at, 0u);
                expected.resize(std::min(expected.size(), got.tokens.size()));
                aborted += 1;
            }
            ASSERT_EQ(got.tokens, expected) << "request " << i << ", output " << k;
        }
    EXPECT_GT(aborted, 5u);
}

INSTANTIATE_TEST_SUITE_P(
    Engine, UnderPressure,
    ::testing::Values(Pressed{"fcfs", [](auto&) {}},
                      Pressed{"priority", [](auto& c) { c.scheduler.plugin = "priority"; }},
                      Pressed{"prefix_caching", [](auto& c) { c.engine.enable_prefix_caching = true; }},
                      Pressed{"drafts",
                              [](auto& c) {
                                  c.proposer = config::PluginChoice{"ngram", {}};
                                  c.engine.num_speculative_tokens = 3;
                              }},
                      Pressed{"fair", [](auto& c) { c.scheduler.plugin = "fair"; }},
                      Pressed{"swap", swaps},
                      Pressed{"swap_whole_prompts",
                              [](auto& c) {
                                  swaps(c);
                                  c.engine.enable_chunked_prefill = false;
                                  c.engine.enable_prefix_caching = true;
                                  c.engine.max_num_batched_tokens = 80;
                              }},
                      Pressed{"sampler_faults", [](auto&) {}, swap_sampler}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace patchbay::engine::testing
