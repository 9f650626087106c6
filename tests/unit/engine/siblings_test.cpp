// Several outputs of one request: each is what a request of its own would get, the prompt is computed once.
#include <gmock/gmock.h>

#include "unit/engine/engine_fixture.hpp"
#include "unit/engine/report_sums.hpp"

namespace patchbay::engine::siblings_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr uint32_t kBlock = 8; // of tiny_model()

SamplingParams several(uint32_t n, uint64_t seed, uint32_t max_tokens) {
    SamplingParams p = seeded(seed, max_tokens);
    p.n = n;
    return p;
}

const Output& output(const Harness& h, RequestId id, uint32_t index) {
    return index == 0 ? h.outputs.at(id) : h.others.at({id, index});
}

// Runs `n` outputs of each prompt at once, and each of them alone, on engines that `change` made different.
template <class F>
void expect_as_alone(const std::vector<std::vector<TokenId>>& prompts, uint32_t n, uint32_t max_tokens, F&& change) {
    auto c = tiny_model();
    change(c);
    Harness together(c);
    std::vector<RequestId> ids;
    for (const auto& prompt : prompts) ids.push_back(together.add(prompt, several(n, 100 * ids.size(), max_tokens)));
    together.run_all();
    auto plain = tiny_model();
    plain.model = c.model;
    for (size_t i = 0; i < prompts.size(); ++i)
        for (uint32_t k = 0; k < n; ++k) {
            Harness alone(plain);
            const Output& expected = alone.run(alone.add(prompts[i], seeded(100 * i + k, max_tokens)));
            EXPECT_EQ(output(together, ids[i], k).tokens, expected.tokens) << "prompt " << i << ", output " << k;
            EXPECT_EQ(output(together, ids[i], k).endings, 1u);
        }
    EXPECT_TRUE(together.engine->reset_prefix_cache()) << "blocks are still in use";
}

std::vector<std::vector<TokenId>> prompts_of(const std::vector<uint32_t>& lengths) {
    std::vector<std::vector<TokenId>> out;
    for (const uint32_t length : lengths) out.push_back(random_prompt(length, length));
    return out;
}

TEST(Siblings, HaveTheTextsOfRequestsOfTheirOwn) {
    const auto prompts = prompts_of({1, 2, kBlock, kBlock + 1, 30});
    expect_as_alone(prompts, 3, 20, [](config::EngineConfig&) {});
    expect_as_alone(prompts, 3, 20, [](config::EngineConfig& c) { c.engine.enable_prefix_caching = false; });
    expect_as_alone(prompts, 3, 20, [](config::EngineConfig& c) {
        c.engine.max_num_batched_tokens = 11;
        c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
        c.engine.num_speculative_tokens = 3;
    });
}

TEST(Siblings, HaveThemAlsoWhenTheyArePreempted) {
    expect_as_alone(prompts_of({20, 13, 30}), 3, 30, [](config::EngineConfig& c) {
        c.engine.num_blocks = 12; // of 9 sequences of up to 60 tokens
        c.engine.max_model_len = 80;
        c.engine.watermark = 0;
    });
}

TEST(Siblings, ComputeTheirPromptOnce) {
    for (const auto& [length, copies] : {std::pair(3 * kBlock + 6, 3u), std::pair(3 * kBlock + 1, 0u)}) {
        auto c = tiny_model();
        c.engine.enable_prefix_caching = false;
        Harness h(c);
        h.add(random_prompt(1, length), several(4, 7, 4));
        h.step();
        EXPECT_EQ(h.steps.back().work.prefill_tokens, length);
        EXPECT_EQ(h.steps.back().queues.waiting_requests, 3u);
        h.step();
        EXPECT_EQ(h.steps.back().work.prefill_tokens, 3u) << "each needs the logits of the last token";
        EXPECT_EQ(h.steps.back().work.forked, 3u);
        EXPECT_EQ(h.steps.back().kv.copied_pages, copies);
        EXPECT_EQ(h.steps.back().kv.used_pages, 3u + 4u);
        h.run_all();
        EXPECT_EQ(sum_over(h.steps, &KvReport::copied_pages), copies);
    }
}

TEST(Siblings, BeginThoughTheFirstHasEnded) {
    Harness h(tiny_model());
    const RequestId id = h.add(random_prompt(1, 20), several(3, 5, 1));
    h.run_all();
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(output(h, id, i).tokens.size(), 1u);
        EXPECT_EQ(output(h, id, i).finish, FinishReason::kLength);
    }
}

// Nothing is there to share any more, so schedulers see no shared pages.
TEST(Siblings, ComputeThePromptAnewWhereTheFirstLeftNothing) {
    auto c = tiny_model();
    c.engine.enable_prefix_caching = false;
    c.engine.num_blocks = 8; // the prompt of one, and half of another
    c.engine.max_model_len = 48;
    c.engine.watermark = 0;
    Harness h(c);
    const RequestId id = h.add(random_prompt(1, 40), several(3, 5, 1));
    h.run_all();
    for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(output(h, id, i).preemptions, 0u);
    EXPECT_EQ(h.steps.size(), 3u);
}

// A sibling far ahead has given back what its window passed; a waiting one computes the prompt, and does not thrash.
TEST(Siblings, OfAWindowThatHasPassedComputeThePromptAnew) {
    auto c = tiny_model();
    c.model = {};
    c.model.path = repository("tests/golden/models/mistral_window");
    c.model.tokenizer = "none";
    c.engine.enable_prefix_caching = false;
    c.engine.max_num_seqs = 2; // the third gets its seat when the second, which still runs, is far ahead
    Harness h(c);
    const RequestId id = h.add(random_prompt(3, 40, 100), several(3, 5, 40));
    h.run_all();
    for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(output(h, id, i).preemptions, 0u);
    EXPECT_EQ(sum_over(h.steps, &ScheduledWork::forked), 1u);
    const auto whole = [](const StepReport& r) { return r.work.prefill_tokens == 40; };
    EXPECT_EQ(std::count_if(h.steps.begin(), h.steps.end(), whole), 2) << "it saw KV that is gone";
}

TEST(Siblings, EndTogetherWhenTheirRequestIsAborted) {
    for (int steps = 0; steps < 4; ++steps) {
        auto c = tiny_model();
        c.engine.max_num_seqs = 2;
        Harness h(c);
        const RequestId id = h.add(random_prompt(1, 20), several(4, 5, 50)),
                        other = h.add(random_prompt(2, 20), greedy(3));
        for (int i = 0; i < steps; ++i) h.step();
        h.engine->abort(id + 1); // of a sequence, not of a request
        EXPECT_EQ(h.outputs.at(id).endings, 0u);
        h.engine->abort(id);
        for (uint32_t i = 0; i < 4; ++i) {
            EXPECT_EQ(output(h, id, i).finish, FinishReason::kAbort) << i;
            EXPECT_EQ(output(h, id, i).endings, 1u);
        }
        EXPECT_EQ(h.run(other).tokens.size(), 3u);
        EXPECT_FALSE(h.engine->has_unfinished());
        EXPECT_TRUE(h.engine->reset_prefix_cache());
    }
}

TEST(Siblings, MayBeAbortedByOneOfThem) {
    Harness h(tiny_model());
    std::vector<std::pair<uint32_t, FinishReason>> endings;
    Request r;
    r.prompt = random_prompt(1, 20);
    r.sampling = several(3, 5, 50);
    r.on_output = [&](const RequestOutput& out) {
        if (out.finish != FinishReason::kNone) endings.emplace_back(out.index, out.finish);
        else if (out.index == 1) h.engine->abort(out.id);
    };
    ASSERT_TRUE(h.engine->add_request(r));
    h.run_all();
    EXPECT_THAT(endings, ::testing::UnorderedElementsAre(std::pair(0u, FinishReason::kAbort),
                                                         std::pair(1u, FinishReason::kAbort),
                                                         std::pair(2u, FinishReason::kAbort)));
}

TEST(Siblings, OfModelsWithWindowsOrStatesAreAsAloneToo) {
    for (const char* model : {"tests/golden/models/mistral_window", "tests/golden/models/bamba"}) {
        const std::vector<std::vector<TokenId>> prompts = {random_prompt(3, 40, 100), random_prompt(4, 17, 100)};
        expect_as_alone(prompts, 3, 30, [&](config::EngineConfig& c) {
            c.model = {};
            c.model.path = repository(model);
            c.model.tokenizer = "none";
        });
    }
}

TEST(Siblings, ThatAreTooManyOrAllAlikeAreRefused) {
    Harness h(tiny_model());
    const auto refusal = [&](uint32_t n, float temperature) {
        Request r;
        r.prompt = {1, 2};
        r.sampling.n = n;
        r.sampling.temperature = temperature;
        return h.engine->add_request(r).error();
    };
    EXPECT_EQ(refusal(0, 1), "n is 0, expected 1 to 128");
    EXPECT_EQ(refusal(129, 1), "n is 129, expected 1 to 128");
    EXPECT_THAT(refusal(2, 0), HasSubstr("n is 2 at temperature 0"));
    EXPECT_FALSE(h.engine->has_unfinished());
}

}  // namespace
}  // namespace patchbay::engine::siblings_test
