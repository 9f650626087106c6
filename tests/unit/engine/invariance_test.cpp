// Bitwise the same tokens and log-probabilities, whatever else happens: batch, chunks, cache, preemption, speculation,
// threads.
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing {
namespace {

SamplingParams with_logprobs(SamplingParams p) {
    p.logprobs = 3;
    return p;
}

void expect_same(const Output& a, const Output& b, const std::string& what) {
    EXPECT_EQ(a.tokens, b.tokens) << what;
    ASSERT_EQ(a.logprobs.size(), b.logprobs.size()) << what;
    for (size_t i = 0; i < a.logprobs.size(); ++i) {
        EXPECT_EQ(a.logprobs[i].sampled, b.logprobs[i].sampled) << what << ", token " << i; // bitwise
        EXPECT_EQ(a.logprobs[i].top, b.logprobs[i].top) << what << ", token " << i;
    }
}

struct Case {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
};

// Greedy and seeded requests with repetition in their prompts, so that drafts are made and accepted.
std::vector<Case> cases(size_t count) {
    std::vector<Case> out;
    for (size_t i = 0; i < count; ++i) {
        auto prompt = random_prompt(i, 20 + static_cast<uint32_t>(i * 7 % 60));
        const std::vector<TokenId> head(prompt.begin(), prompt.begin() + 12);
        prompt.insert(prompt.end(), head.begin(), head.end());
        out.push_back({prompt, with_logprobs(i % 2 ? seeded(100 + i, 24) : greedy(24))});
    }
    return out;
}

std::vector<Output> alone(const std::vector<Case>& all, const config::EngineConfig& c) {
    std::vector<Output> out;
    for (const Case& one : all) {
        Harness h(c);
        out.push_back(h.run(h.add(one.prompt, one.sampling)));
    }
    return out;
}

void expect_unchanged(const config::EngineConfig& base, const config::EngineConfig& changed, const std::vector<Case>& all, const std::string& what,
                      uint64_t* preemptions = nullptr, uint64_t* accepted = nullptr) {
    const auto expected = alone(all, base);
    Harness h(changed);
    std::vector<RequestId> ids;
    for (const Case& one : all) ids.push_back(h.add(one.prompt, one.sampling));
    h.run_all();
    for (size_t i = 0; i < all.size(); ++i) expect_same(expected[i], h.outputs.at(ids[i]), what + ", request " + std::to_string(i));
    for (const StepReport& r : h.steps) {
        if (preemptions) *preemptions += r.preemptions;
        if (accepted) *accepted += r.accepted_tokens;
    }
    EXPECT_EQ(h.steps.back().used_blocks, 0u) << what;
}

class Invariance : public ::testing::TestWithParam<const char*> { // attention plugin
  protected:
    Invariance() {
        base_.attention.plugin = GetParam();
        base_.engine.enable_prefix_caching = false;
    }
    config::EngineConfig base_ = tiny_model();
};

TEST_P(Invariance, InABatchOf32) { expect_unchanged(base_, base_, cases(32), "batch"); }

TEST_P(Invariance, InChunksOf1And7And64Tokens) {
    for (const uint32_t chunk : {1u, 7u, 64u}) {
        auto c = base_;
        c.engine.max_num_batched_tokens = chunk;
        c.engine.max_num_seqs = std::min(chunk, 8u);
        expect_unchanged(base_, c, cases(6), "chunks of " + std::to_string(chunk));
    }
}

TEST_P(Invariance, WithPrefixCaching) {
    auto c = base_;
    c.engine.enable_prefix_caching = true;
    auto all = cases(4);
    const auto again = all; // the same prompts twice: the second time they hit
    all.insert(all.end(), again.begin(), again.end());
    expect_unchanged(base_, c, all, "prefix caching");

    Harness h(c);
    h.run(h.add(all[0].prompt, all[0].sampling));
    const Output& hit = h.run(h.add(all[0].prompt, all[0].sampling));
    EXPECT_GT(hit.cached_tokens, 0u);
}

TEST_P(Invariance, AfterForcedPreemptions) {
    auto c = base_;
    c.engine.num_blocks = 30; // of 8 tokens, for 12 requests of up to 100
    c.engine.max_model_len = 128;
    uint64_t preemptions = 0;
    expect_unchanged(base_, c, cases(12), "preemption", &preemptions);
    EXPECT_GT(preemptions, 0u);
}

TEST_P(Invariance, WithNgramSpeculation) {
    auto c = base_;
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 4;
    uint64_t accepted = 0;
    expect_unchanged(base_, c, cases(12), "ngram", nullptr, &accepted);
    EXPECT_GT(accepted, 0u) << "no draft was ever accepted, so nothing was shown";
}

TEST_P(Invariance, WithTwoThreads) {
    auto c = base_;
    c.engine.threads = 2;
    expect_unchanged(base_, c, cases(16), "two threads");
}

TEST_P(Invariance, WithEverythingAtOnce) {
    auto c = base_;
    c.engine.threads = 2;
    c.engine.enable_prefix_caching = true;
    c.engine.num_blocks = 30;
    c.engine.max_model_len = 128;
    c.engine.max_num_batched_tokens = 40;
    c.engine.max_num_seqs = 8;
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 3;
    for (const char* scheduler : {"fcfs", "priority", "sjf", "static"}) {
        c.scheduler.plugin = scheduler;
        expect_unchanged(base_, c, cases(16), scheduler);
    }
}

INSTANTIATE_TEST_SUITE_P(Attention, Invariance, ::testing::Values("paged", "reference"), [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace patchbay::engine::testing
