// Models whose layers keep KV of several kinds: the same texts as alone whatever happens to their pages, and pages
// given back that no token sees any more.
#include <gmock/gmock.h>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing::groups_test {
namespace {

// Local layers that see 16 tokens beside a global one, in pages of 8.
config::EngineConfig local_and_global() {
    config::EngineConfig c = tiny_model();
    c.model.shape["architectures.0"] = "Gemma2ForCausalLM";
    c.model.shape["head_dim"] = "16";
    c.model.shape["num_hidden_layers"] = "3";
    c.model.shape["sliding_window"] = "16";
    c.engine.enable_prefix_caching = false;
    return c;
}

config::EngineConfig local_only() {
    config::EngineConfig c = tiny_model();
    c.model.shape["architectures.0"] = "MistralForCausalLM";
    c.model.shape["sliding_window"] = "16";
    c.engine.enable_prefix_caching = false;
    return c;
}

// Three layers that keep a state, and one that attends.
config::EngineConfig hybrid() {
    config::EngineConfig c = tiny_model();
    c.model.load_format = config::LoadFormat::kAuto;
    c.model.path = repository("tests/golden/models/bamba");
    c.model.shape.clear();
    c.engine.enable_prefix_caching = false;
    return c;
}

using Texts = std::vector<std::vector<TokenId>>;

constexpr uint32_t kVocab = 128; // of the smallest

std::vector<TokenId> prompt(size_t i) { return random_prompt(i, 20 + static_cast<uint32_t>(i * 13 % 70), kVocab); }

Texts alone(const config::EngineConfig& c, size_t count) {
    Texts out;
    for (size_t i = 0; i < count; ++i) {
        Harness h(c);
        out.push_back(h.run(h.add(prompt(i), greedy(30))).tokens);
    }
    return out;
}

struct Together {
    Texts texts;
    uint64_t preemptions = 0, accepted = 0;
    uint32_t cached = 0, max_used = 0;
};

Together together(const config::EngineConfig& c, size_t count) {
    Harness h(c);
    std::vector<RequestId> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(h.add(prompt(i), greedy(30)));
    h.run_all();
    Together out;
    for (const RequestId id : ids) {
        out.texts.push_back(h.outputs.at(id).tokens);
        out.cached += h.outputs.at(id).cached_tokens;
    }
    for (const StepReport& s : h.steps) {
        out.preemptions += s.preemption.preemptions;
        out.accepted += s.drafts.accepted_tokens;
        out.max_used = std::max(out.max_used, s.kv.used_pages);
    }
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    return out;
}

TEST(KvGroups, LocalAndGlobalLayersAreGroupsOfTheirOwn) {
    Harness h(local_and_global());
    EXPECT_EQ(h.engine->facts().kv.groups, 3u); // three layers, of which two are local: a page for each
    EXPECT_EQ(h.engine->facts().kv.padding, 0);
    EXPECT_EQ(h.engine->facts().kv.state_groups, 0u);
}

TEST(KvGroups, GiveTheSameTextsInChunksBatchesAndAfterPreemptions) {
    const std::pair<config::EngineConfig, uint32_t> tight_pools[] = {
        {local_and_global(), 24}, {local_only(), 10}, {hybrid(), 30}};
    for (auto [c, tight_pool] : tight_pools) {
        const Texts expected = alone(c, 8);
        EXPECT_EQ(together(c, 8).texts, expected);
        for (const uint32_t chunk : {1u, 7u, 33u}) {
            c.engine.max_num_batched_tokens = chunk;
            c.engine.max_num_seqs = std::min(chunk, 4u);
            EXPECT_EQ(together(c, 8).texts, expected) << "in chunks of " << chunk;
        }
        c.engine.max_num_batched_tokens = 64;
        c.engine.max_num_seqs = 8;
        c.engine.max_model_len = 120;
        c.engine.num_blocks = tight_pool;
        for (const char* scheduler : {"fcfs", "priority", "sjf", "static"}) {
            c.scheduler.plugin = scheduler;
            const Together tight = together(c, 8);
            EXPECT_EQ(tight.texts, expected) << scheduler;
            EXPECT_GT(tight.preemptions, 0u) << scheduler;
        }
    }
}

TEST(KvGroups, GiveTheSameTextsWithPrefixHitsAndDrafts) {
    for (auto c : {local_and_global(), local_only()}) {
        const Texts expected = alone(c, 6);
        c.engine.enable_prefix_caching = true;
        c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
        c.engine.num_speculative_tokens = 3;
        Harness h(c);
        uint32_t cached = 0;
        for (int round = 0; round < 2; ++round)
            for (size_t i = 0; i < expected.size(); ++i) {
                const Output& out = h.run(h.add(prompt(i), greedy(30)));
                EXPECT_EQ(out.tokens, expected[i]) << "round " << round << ", prompt " << i;
                cached += out.cached_tokens;
            }
        EXPECT_GT(cached, 0u);
        uint64_t accepted = 0;
        for (const StepReport& s : h.steps) accepted += s.drafts.accepted_tokens;
        EXPECT_GT(accepted, 0u);
    }
}

TEST(KvGroups, AWindowHoldsNoMorePagesThanItSees) {
    auto c = local_only();
    c.engine.num_blocks = 16;
    c.engine.max_num_batched_tokens = 24;
    Harness h(c);
    EXPECT_EQ(h.engine->facts().max_model_len, 512u); // though 16 pages hold 128 tokens
    h.add(random_prompt(1, 400), greedy(50));
    h.run_all();
    for (const StepReport& s : h.steps) {
        EXPECT_LE(s.kv.used_pages, 3u); // after the step: a window of 16 in pages of 8
        EXPECT_EQ(s.kv.group_pages[static_cast<size_t>(kv::GroupKind::kSliding)], s.kv.used_pages);
        EXPECT_EQ(s.preemption.preemptions, 0u);
    }
    EXPECT_EQ(h.outputs.begin()->second.tokens.size(), 50u);
}

TEST(KvGroups, ASequenceThatFillsThePoolAloneEndsByPartsThatFit) {
    auto c = local_and_global(); // a block takes three pages, two of which become free outside the window
    c.engine.num_blocks = 38;    // 32 global blocks, and three in each window
    Harness wide(local_and_global());
    const auto expected = wide.run(wide.add(random_prompt(1, 200), greedy(50))).tokens;
    for (const bool caching : {false, true}) {
        c.engine.enable_prefix_caching = caching;
        for (const uint32_t chunk : {8u, 512u}) {
            c.engine.max_num_batched_tokens = chunk;
            c.engine.max_num_seqs = 8;
            Harness h(c);
            EXPECT_EQ(h.engine->facts().max_model_len, 256u);
            EXPECT_EQ(h.run(h.add(random_prompt(1, 200), greedy(50))).tokens, expected);
            EXPECT_EQ(h.run(h.add(random_prompt(1, 200), greedy(50))).tokens, expected);
        }
    }
}

TEST(KvGroups, PromptsThatMayNotBeSplitMustFitWhole) {
    auto c = local_and_global();
    c.engine.num_blocks = 38;
    c.engine.enable_chunked_prefill = false;
    Harness h(c);
    EXPECT_EQ(h.engine->facts().max_model_len, 96u);
    EXPECT_EQ(h.run(h.add(random_prompt(1, 80), greedy(16))).tokens.size(), 16u);
}

TEST(KvGroups, AStateIsOnePageHoweverLongTheSequence) {
    Harness h(hybrid());
    EXPECT_EQ(h.engine->facts().kv.groups, 1u);
    EXPECT_EQ(h.engine->facts().kv.state_groups, 3u);
    EXPECT_GT(h.engine->facts().kv.padding, 0);
    h.add(random_prompt(1, 60, kVocab), greedy(40));
    h.run_all();
    const size_t states = static_cast<size_t>(kv::GroupKind::kRecurrent);
    for (size_t i = 0; i + 1 < h.steps.size(); ++i) EXPECT_EQ(h.steps[i].kv.group_pages[states], 3u);
    EXPECT_EQ(h.steps.back().kv.group_pages[states], 0u);
}

// No layer that attends: five pages are five sequences of any length.
config::EngineConfig states_only() {
    config::EngineConfig c = tiny_model();
    c.model.shape["architectures.0"] = "BambaForCausalLM";
    c.model.shape["mamba_n_heads"] = "8";
    c.model.shape["mamba_d_state"] = "16";
    c.engine.num_blocks = 5;
    c.engine.enable_prefix_caching = false;
    return c;
}

TEST(KvGroups, StatesAloneAreAPageASequence) {
    Harness h(states_only());
    EXPECT_EQ(h.engine->facts().kv.groups, 0u);
    EXPECT_EQ(h.engine->facts().kv.state_groups, 1u);
    EXPECT_EQ(h.engine->facts().max_model_len, 512u);
    const Texts expected = alone(states_only(), 9);
    for (size_t i = 0; i < 9; ++i) h.add(prompt(i), greedy(30));
    h.run_all();
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(h.outputs.at(i + 1).tokens, expected[i]);
    for (const StepReport& s : h.steps) {
        EXPECT_LE(s.queues.running_requests, 5u);
        EXPECT_EQ(s.kv.used_pages, s.queues.running_requests);
    }
}

TEST(KvGroups, AStepWithStatesTakesTheSameTimeAtAnyLength) {
    auto c = states_only();
    c.model.dtype = config::DType::kBf16;
    c.device.plugin = "sim";
    c.device.settings = {{"matmul_bf16", "1e12"}, {"matmul_f32", "1e12"}, {"memory_read", "1e12"},
                         {"memory_bytes", "100000000"}, {"launch_ns", "1000"}};
    Harness h(c);
    h.add(random_prompt(1, 40), greedy(300));
    h.run_all();
    const auto nanoseconds = [](const StepReport& s) { return s.end_ns - s.start_ns; };
    for (size_t i = 2; i < h.steps.size(); ++i) EXPECT_EQ(nanoseconds(h.steps[i]), nanoseconds(h.steps[1])) << i;
    EXPECT_GT(nanoseconds(h.steps[0]), nanoseconds(h.steps[1])); // a prompt
}

TEST(KvGroups, StatesAreNotSharedByPrefixes) {
    auto c = hybrid();
    c.engine.enable_prefix_caching = true;
    Harness h(c);
    EXPECT_EQ(h.engine->facts().kv.prefix_caching, "off: layers keep states, which are those of the latest token only");
    const auto first = h.run(h.add(prompt(3), greedy(20))).tokens;
    const Output& again = h.run(h.add(prompt(3), greedy(20)));
    EXPECT_EQ(again.tokens, first);
    EXPECT_EQ(again.cached_tokens, 0u);
}

TEST(KvGroups, AProposerIsRefusedWhereAStateCannotGoBack) {
    auto c = hybrid();
    c.proposer = config::PluginChoice{"ngram", {}};
    c.engine.num_speculative_tokens = 2;
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error(), "proposer 'ngram' with model 'bamba', whose layers keep states: a state cannot go back "
                            "before a draft that is rejected (choose proposer: none)");
}

}  // namespace
}  // namespace patchbay::engine::testing::groups_test
