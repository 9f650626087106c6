// Far too few blocks for what is asked, on a device that computes: each text is that of the request run alone. Where
// drafts are verified by rejection a seeded text depends on where there were drafts: there its tokens are those that
// the model, alone, has among its likeliest after the same tokens.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>

#include "engine/engine_control.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"
#include "patchbay/sdk/philox.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "paths.hpp"

namespace patchbay::engine::testing::pressure_test {
namespace {

constexpr uint32_t kRequests = 500;
constexpr int32_t kTopK = 5; // of sampled tokens, so that a wrong page is likely to show

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
        SamplingParams& p = c.sampling;
        if (p.temperature > 0 && p.mirostat == 0) p.top_k = kTopK;
        if (p.temperature > 0 && next(4) == 0) p.best_of = p.n + 1 + next(3);
        if (p.repetition_penalty == 1 && p.temperature == 0 && next(3) == 0) {
            p = greedy(p.max_tokens);
            p.temperature = 1;
            p.beam_width = 2 + next(3);
            p.n = 1 + next(p.beam_width);
            p.early_stopping = next(2) ? EarlyStopping::kYes : EarlyStopping::kNo;
            for (uint32_t t = next(20); t < 300; t += 20) p.stop_token_ids.push_back(static_cast<TokenId>(t));
        }
    }
    return out;
}

bool is_beams(const Case& c) { return c.sampling.beam_width > 0; }

// Of best_of all that are made, the likeliest first.
std::vector<std::vector<TokenId>> outputs_alone(Harness& h, const Case& c) {
    std::vector<Output> made;
    if (is_beams(c)) {
        const RequestId id = h.add(c.prompt, c.sampling);
        h.run_all();
        for (uint32_t k = 0; k < c.sampling.n; ++k) made.push_back(k == 0 ? h.outputs.at(id) : h.others.at({id, k}));
    } else {
        for (uint32_t k = 0; k < sequences_of(c.sampling); ++k) {
            SamplingParams p = c.sampling;
            p.n = 1;
            p.best_of = 0;
            if (p.seed) p.seed = *p.seed + k;
            if (c.sampling.best_of > 0) p.logprobs = 0;
            made.push_back(h.run(h.add(c.prompt, p)));
        }
        if (c.sampling.best_of > 0) std::ranges::stable_sort(made, std::greater(), &Output::cumulative_logprob);
    }
    std::vector<std::vector<TokenId>> out;
    for (Output& o : made) out.push_back(std::move(o.tokens));
    return out;
}

// Whether the model has each token among its likeliest after those before it.
bool is_likely(Harness& h, const std::vector<TokenId>& prompt, const std::vector<TokenId>& output) {
    std::vector<TokenId> whole = prompt;
    whole.insert(whole.end(), output.begin(), output.end());
    SamplingParams p = greedy(1);
    p.prompt_logprobs = kTopK;
    const Output& o = h.run(h.add(whole, p));
    for (size_t i = prompt.size(); i < whole.size(); ++i) // those of token 1 come first
        if (std::ranges::none_of(o.prompt_logprobs.at(i - 1).top, [&](const auto& t) { return t.first == whole[i]; }))
            return false;
    return true;
}

using Texts = std::vector<std::vector<std::vector<TokenId>>>; // by case and index

const Texts& alone() {
    static const Texts all = [] {
        Texts out;
        Harness h(small_model());
        for (const Case& c : load()) out.push_back(outputs_alone(h, c));
        return out;
    }();
    return all;
}

// Each look at it takes some time, now and then much: what a token and what a page costs seems to change.
class RestlessClock final : public Clock {
  public:
    uint64_t now_ns() const override {
        const uint32_t drawn = draw(1, looks_++, Stream::kTest, 0)[0];
        return now_ns_ += drawn % 16 == 0 ? drawn % 100'000 : drawn % 100;
    }
    void wait_until_ns(uint64_t when_ns) override { now_ns_ = std::max<uint64_t>(now_ns_, when_ns); }

  private:
    mutable std::atomic<uint64_t> looks_ = 0, now_ns_ = 0;
};

const host::Registry& with_faulty() {
    static const auto all = host::Registry::open({std::string(kBuildDir) + "/tests/swap_plugins"});
    if (!all) throw std::runtime_error(all.error());
    return *all;
}

// To samplers that fail on probation: what they leave undone another does.
void swap_sampler(Harness& h, uint32_t step) {
    static host::Prober prober(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    if (step % 25 > 0 || step > 500) return;
    const config::PluginChoice to{"faulty", {{"fault", step % 50 ? "throws" : "negative"}, {"vocab", "300"}}};
    const auto swap = h.engine->control().swap({SwapSlot::kSampler, to, with_faulty(), prober});
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
    const bool chooses = c.engine.preemption_mode == config::PreemptionMode::kAuto,
               rejects = c.speculative.rejection_sample_method == config::Verification::kRejection;
    RestlessClock restless;
    auto owned = chooses ? std::make_unique<Harness>(c, restless) : std::make_unique<Harness>(c);
    Harness& h = *owned;
    const auto cases = load();
    std::vector<RequestId> ids;
    for (const Case& one : cases) {
        Request r;
        r.prompt = one.prompt;
        r.sampling = one.sampling;
        r.priority = one.priority;
        ids.push_back(h.add(std::move(r)));
    }
    uint64_t preemptions = 0, accepted = 0;
    for (uint32_t step = 1; h.engine->has_unfinished(); ++step) {
        ASSERT_LT(step, 20'000u) << "a request starves";
        for (uint32_t i = 0; i < kRequests; ++i)
            if (cases[i].abort_at == step) h.engine->abort(ids[i]);
        GetParam().between(h, step);
        const StepReport report = h.step();
        preemptions += report.preemption.preemptions;
        accepted += report.drafts.accepted_tokens;
        const auto sound = h.engine->audit();
        ASSERT_TRUE(sound) << "step " << step << ": " << sound.error();
    }
    EXPECT_GT(preemptions, 100u);
    EXPECT_EQ(h.engine->view().free_pages, c.engine.num_blocks);
    Harness judge(small_model());
    uint32_t aborted = 0, others = 0;
    for (uint32_t i = 0; i < kRequests; ++i)
        for (uint32_t k = 0; k < cases[i].sampling.n; ++k) {
            SCOPED_TRACE("request " + std::to_string(i) + ", output " + std::to_string(k));
            const SamplingParams& p = cases[i].sampling;
            const Output& got = k == 0 ? h.outputs.at(ids[i]) : h.others.at({ids[i], k});
            const auto begins_as_it = [&](const std::vector<TokenId>& text) {
                return std::ranges::mismatch(got.tokens, text).in1 == got.tokens.end();
            };
            ASSERT_EQ(got.endings, 1u);
            if (got.finish == FinishReason::kAbort) {
                ASSERT_GT(cases[i].abort_at, 0u);
                aborted += 1;
            } else if (!is_beams(cases[i])) {
                ASSERT_EQ(got.tokens.size(), p.max_tokens);
            }
            if (rejects && p.top_k > 0) {
                others += !begins_as_it(alone()[i][k]);
                if (p.repetition_penalty == 1) { // which others are likeliest with
                    ASSERT_TRUE(is_likely(judge, cases[i].prompt, got.tokens));
                }
            } else if (got.finish == FinishReason::kAbort || (p.best_of > 0 && cases[i].abort_at > 0)) {
                ASSERT_TRUE(std::ranges::any_of(alone()[i], begins_as_it)); // of best_of: of those that there were
            } else {
                ASSERT_EQ(got.tokens, alone()[i][k]);
            }
        }
    EXPECT_EQ(others > 0, rejects);
    EXPECT_EQ(accepted > 0, c.proposer.has_value());
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
                      Pressed{"rejection",
                              [](auto& c) {
                                  c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
                                  c.engine.num_speculative_tokens = 3;
                                  c.speculative.rejection_sample_method = config::Verification::kRejection;
                              }},
                      Pressed{"fair", [](auto& c) { c.scheduler.plugin = "fair"; }},
                      Pressed{"swap", swaps},
                      Pressed{"auto",
                              [](auto& c) {
                                  swaps(c);
                                  c.engine.preemption_mode = config::PreemptionMode::kAuto;
                              }},
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
}  // namespace patchbay::engine::testing::pressure_test
