// The policy that chooses which cached page goes, in a whole engine: it changes hits and no text.
#include <gmock/gmock.h>

#include "engine/metrics/engine_metrics.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing::eviction_test {
namespace {

using ::testing::HasSubstr;

config::EngineConfig with(const std::string& policy, const host::Settings& settings = {}) {
    auto c = tiny_model();
    c.engine.num_blocks = 40; // of 8 tokens: not enough for all that could be cached
    c.engine.max_model_len = 160;
    if (!policy.empty()) c.kv_policy = config::PluginChoice{policy, settings};
    return c;
}

struct Sum {
    std::vector<std::vector<TokenId>> texts;
    uint64_t hits = 0, evicted = 0, chosen = 0, faults = 0;
};

// Conversations of several turns, a few at once, with three beginnings.
Sum converse(const config::EngineConfig& c) {
    Harness h(c);
    Sum out;
    std::vector<std::vector<TokenId>> histories;
    for (uint64_t i = 0; i < 9; ++i) histories.push_back(random_prompt(i % 3, 24));
    for (uint64_t turn = 0; turn < 3; ++turn)
        for (size_t first = 0; first < histories.size(); first += 3) {
            std::vector<RequestId> ids;
            for (size_t i = first; i < first + 3; ++i) {
                const auto more = random_prompt(100 + 10 * i + turn, 9);
                histories[i].insert(histories[i].end(), more.begin(), more.end());
                ids.push_back(h.add(histories[i], greedy(10)));
            }
            h.run_all();
            const auto sound = h.engine->audit();
            EXPECT_TRUE(sound) << sound.error();
            for (size_t i = 0; i < ids.size(); ++i) {
                const auto& tokens = h.outputs.at(ids[i]).tokens;
                histories[first + i].insert(histories[first + i].end(), tokens.begin(), tokens.end());
                out.texts.push_back(tokens);
            }
        }
    for (const StepReport& s : h.steps) {
        out.hits += s.kv.prefix_hit_tokens;
        out.evicted += s.kv.evicted_pages;
        out.chosen += s.kv.chosen_evictions;
        out.faults += s.calls.kv_policy_faults;
    }
    return out;
}

TEST(KvPolicy, ChangesNoText) {
    const Sum plain = converse(with(""));
    EXPECT_EQ(plain.chosen, 0u);
    for (const char* policy : {"lru", "lfu", "prefix_tree"}) {
        for (const bool swaps : {false, true}) {
            auto c = with(policy);
            if (swaps) {
                c.engine.preemption_mode = config::PreemptionMode::kSwap;
                c.engine.num_swap_blocks = 20;
                c.engine.num_blocks = 24;
                c.engine.zero_freed_blocks = true;
            }
            const Sum sum = converse(c);
            EXPECT_EQ(sum.texts, plain.texts) << policy;
            EXPECT_GT(sum.chosen, 20u) << policy;
            EXPECT_EQ(sum.chosen, sum.evicted) << policy;
            EXPECT_GT(sum.hits, 0u) << policy;
            EXPECT_EQ(sum.faults, 0u) << policy;
        }
    }
}

TEST(KvPolicy, AWrongOneCostsNoRequest) {
    const Sum healthy = converse(with("misnames"));
    EXPECT_EQ(healthy.faults, 0u);
    for (const char* wrong : {"pages", "count", "choose", "update"}) {
        const Sum sum = converse(with("misnames", {{"wrong", wrong}}));
        EXPECT_EQ(sum.texts, healthy.texts) << wrong;
        EXPECT_GT(sum.faults, 0u) << wrong;
        EXPECT_GT(sum.evicted, sum.chosen) << wrong;
        EXPECT_EQ(sum.hits, healthy.hits) << wrong << ": the host goes by age as this policy does";
    }
}

TEST(KvPolicy, IsAmongThePluginsAndItsMetrics) {
    Harness h(with("lfu"));
    metrics::Metrics all;
    EngineMetrics metrics(all, h.engine->facts(), "9.9");
    StepReport report;
    report.kv.chosen_evictions = 3;
    report.calls.kv_policy_faults = 2;
    report.calls.kv_choose_ns = 5'000'000'000;
    metrics.on_end(report);
    const std::string text = all.text();
    EXPECT_THAT(text, HasSubstr("patchbay_plugin_info{abi=\"1.0\",kind=\"kv_policy\",plugin=\"lfu\""));
    EXPECT_THAT(text, HasSubstr("patchbay_kv_policy_evictions_total{kind=\"kv_policy\",plugin=\"lfu\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("faults_total{kind=\"kv_policy\",plugin=\"lfu\",reason=\"error\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("call_seconds_sum{call=\"choose\",kind=\"kv_policy\",plugin=\"lfu\"} 5\n"));
}

TEST(KvPolicy, WithWindowsEachGroupIsATreeOfItsOwn) {
    for (const char* policy : {"", "lru", "lfu", "prefix_tree"}) {
        auto c = with(policy);
        c.model.shape["architectures.0"] = "Gemma2ForCausalLM";
        c.model.shape["head_dim"] = "16";
        c.model.shape["num_hidden_layers"] = "4";
        c.model.shape["sliding_window"] = "24";
        c.engine.num_blocks = 70;
        static const Sum plain = converse(c);
        const Sum sum = converse(c);
        EXPECT_EQ(sum.texts, plain.texts) << policy;
        EXPECT_EQ(sum.faults, 0u) << policy;
        EXPECT_GT(sum.hits, 0u) << policy;
        EXPECT_GT(sum.evicted, 0u) << policy;
        EXPECT_EQ(sum.chosen, *policy ? sum.evicted : 0u) << policy;
    }
}

}  // namespace
}  // namespace patchbay::engine::testing::eviction_test
