// What an engine does with its pages beyond giving them out: which requests share, what it overwrites, when it admits,
// and what it publishes.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/placement/pressure.hpp"
#include "engine/trace/step_files.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "unit/engine/temporary_folder.hpp"

namespace patchbay::engine::testing::kv_policy_test {
namespace {

using ::testing::HasSubstr;

Request request(std::vector<TokenId> prompt, std::string salt = "", uint32_t max_tokens = 4) {
    Request r;
    r.prompt = std::move(prompt);
    r.sampling = greedy(max_tokens);
    r.cache_salt = std::move(salt);
    return r;
}

TEST(CacheSaltOfARequest, DecidesWhoSharesItsBlocks) {
    Harness h(tiny_model());
    const auto prompt = random_prompt(1, 20);
    EXPECT_EQ(h.run(h.add(request(prompt, "a"))).cached_tokens, 0u);
    EXPECT_EQ(h.run(h.add(request(prompt))).cached_tokens, 0u);
    EXPECT_EQ(h.run(h.add(request(prompt, "b"))).cached_tokens, 0u);
    EXPECT_EQ(h.run(h.add(request(prompt, "a"))).cached_tokens, 16u);
    const auto refused = h.engine->add_request(request(prompt, std::string(kLongestSalt + 1, 'x')));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error(), HasSubstr("cache_salt has 4097 bytes, expected at most 4096"));
}

// Blocks have equal hashes only where keys are turned by equal frequencies.
TEST(KvIdentity, HasTheLengthThatPositionsAreScaledBy) {
    const auto identity = [](const char* scaling, uint32_t max_model_len) {
        config::EngineConfig c = tiny_model();
        c.model.shape["rope_scaling.rope_type"] = scaling;
        c.model.shape["rope_scaling.factor"] = "2";
        c.engine.max_model_len = max_model_len;
        const Harness h(c);
        return h.engine->facts().kv_identity();
    };
    EXPECT_NE(identity("dynamic", 600), identity("dynamic", 700));
    EXPECT_EQ(identity("dynamic", 300), identity("dynamic", 400)); // within the original range
    EXPECT_EQ(identity("linear", 600), identity("linear", 700));
}

TEST(KvEventsOfAnEngine, AreLinesOfJson) {
    const auto path = temporary_folder() / "kv_events.jsonl";
    Harness h(tiny_model());
    ASSERT_TRUE(h.engine->files().write({.kv_events = path.string()}));
    const auto prompt = random_prompt(1, 17);
    h.run(h.add(request(prompt, "", 2)));
    ASSERT_TRUE(h.engine->reset_prefix_cache());
    ASSERT_TRUE(h.engine->files().close());
    std::vector<nlohmann::json> lines;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0]["type"].get<std::string>(), "BlockStored");
    EXPECT_TRUE(lines[0]["parent_block_hash"].is_null());
    EXPECT_EQ(lines[0]["token_ids"].get<std::vector<TokenId>>(),
              std::vector<TokenId>(prompt.begin(), prompt.begin() + 8));
    EXPECT_EQ(lines[0]["block_size"].get<int>(), 8);
    EXPECT_EQ(lines[1]["parent_block_hash"].get<std::string>(), lines[0]["block_hashes"][0].get<std::string>());
    EXPECT_EQ(lines[2]["type"].get<std::string>(), "AllBlocksCleared");
    EXPECT_GT(lines[2]["ts"].get<double>(), 0);
    EXPECT_FALSE(h.engine->files().write({.kv_events = "/nowhere/events.jsonl"}));
}

config::EngineConfig crowded() {
    auto c = tiny_model();
    c.engine.enable_prefix_caching = false;
    c.engine.num_blocks = 24; // of 8 tokens
    c.engine.max_model_len = 120;
    c.engine.watermark = 0;
    return c;
}

struct Sum {
    uint64_t preemptions = 0, steps = 0;
    double watermark = 0;
    std::map<RequestId, Output> outputs;
};

Sum run(const config::EngineConfig& c, uint32_t count) {
    Harness h(c);
    for (uint64_t i = 0; i < count; ++i) h.add(random_prompt(i, 8 + static_cast<uint32_t>(i % 5)), greedy(60));
    h.run_all();
    Sum out;
    for (const StepReport& s : h.steps) {
        out.preemptions += s.preemption.preemptions;
        out.watermark = std::max(out.watermark, s.kv.watermark);
    }
    out.steps = h.steps.size();
    out.outputs = h.outputs;
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    return out;
}

void expect_same_texts(const Sum& a, const Sum& b) {
    for (const auto& [id, o] : a.outputs) EXPECT_EQ(o.tokens, b.outputs.at(id).tokens) << id;
}

TEST(ZeroFreedBlocks, ChangesNoText) {
    auto c = crowded();
    const Sum want = run(c, 12);
    c.engine.zero_freed_blocks = true;
    expect_same_texts(want, run(c, 12));
    c.engine.preemption_mode = config::PreemptionMode::kSwap;
    c.engine.num_swap_blocks = 40;
    expect_same_texts(want, run(c, 12));
    c.engine.enable_prefix_caching = true;
    expect_same_texts(want, run(c, 12));
    c = tiny_model();
    c.model = {};
    c.model.path = repository("models/demo-target");
    c.proposer = config::PluginChoice{"draft_model", {{"model", repository("models/demo-draft")}}};
    c.engine.num_speculative_tokens = 3;
    c.engine.num_blocks = 160;
    c.engine.max_model_len = 100;
    c.engine.watermark = 0;
    const Sum drafted = run(c, 9);
    EXPECT_GT(drafted.preemptions, 0u);
    c.engine.zero_freed_blocks = true;
    const Sum zeroed = run(c, 9);
    expect_same_texts(drafted, zeroed);
    EXPECT_EQ(drafted.steps, zeroed.steps) << "drafts were lost";
}

// A simulated device charges for it, so it shows on the clock.
TEST(ZeroFreedBlocks, OverwritesWhatTheLastRequestLeavesWhenItIsAborted) {
    auto c = crowded();
    c.model.dtype = config::DType::kBf16;
    c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e6"},
                        {"memory_bytes", "100000000"}}};
    c.engine.async_scheduling = config::AsyncScheduling::kOff;
    const auto charged = [&] {
        Harness h(c);
        const RequestId id = h.add(random_prompt(1, 20), greedy(9));
        h.step();
        const uint64_t before = h.clock.now_ns();
        h.engine->abort(id);
        return h.clock.now_ns() - before;
    };
    EXPECT_EQ(charged(), 0u);
    c.engine.zero_freed_blocks = true;
    EXPECT_GT(charged(), 0u);
}

TEST(AdaptiveWatermark, LeavesFewerPreemptionsThanAFixedOne) {
    auto c = crowded();
    const Sum fixed = run(c, 40);
    c.engine.adaptive_watermark = true;
    const Sum adaptive = run(c, 40);
    EXPECT_GT(fixed.preemptions, 20u);
    EXPECT_LT(adaptive.preemptions, fixed.preemptions * 3 / 4);
    EXPECT_EQ(fixed.watermark, 0);
    EXPECT_GT(adaptive.watermark, 0.05);
    expect_same_texts(fixed, adaptive);
}

TEST(AdaptiveWatermark, StaysWhereItIsWhenASeatIsGivenUp) {
    auto c = tiny_model();
    c.engine.num_blocks = 400;
    c.engine.max_num_seqs = 2;
    c.engine.watermark = 0;
    c.engine.adaptive_watermark = true;
    c.scheduler = {"edf", {}};
    Harness h(c);
    for (uint64_t i = 0; i < 8; ++i) {
        Request r = request(random_prompt(i, 12), "", 20);
        r.deadline_ns = (100 - i) * 1'000'000'000; // earlier ones come later
        h.add(std::move(r));
        h.step();
    }
    h.run_all();
    uint32_t preemptions = 0;
    for (const StepReport& s : h.steps) {
        preemptions += s.preemption.preemptions;
        EXPECT_EQ(s.kv.watermark, 0) << "in step " << s.step;
    }
    EXPECT_GT(preemptions, 3u);
}

TEST(PressureMonitor, RisesWithPreemptionsAndFallsInCalm) {
    PressureMonitor m(0.1);
    EXPECT_DOUBLE_EQ(m.watermark(), 0.1);
    m.step(0);
    EXPECT_DOUBLE_EQ(m.watermark(), 0.1);
    m.step(2);
    const double raised = m.watermark();
    EXPECT_GT(raised, 0.1);
    m.step(0);
    EXPECT_LT(m.watermark(), raised);
    for (int i = 0; i < 5000; ++i) m.step(0);
    EXPECT_NEAR(m.watermark(), 0.1, 1e-6);
    m.step(1000);
    EXPECT_DOUBLE_EQ(m.watermark(), 0.5);
}

TEST(FragmentationOfPages, IsWhatHoldsNoTokenYet) {
    auto c = tiny_model();
    Harness h(c);
    h.add(random_prompt(1, 12), greedy(4)); // two pages of 8
    const StepReport r = h.step();
    EXPECT_EQ(r.kv.token_slots, 16u);
    EXPECT_EQ(r.kv.empty_slots, 4u);
    h.run_all();
    EXPECT_EQ(h.steps.back().kv.token_slots, 0u);
    EXPECT_EQ(h.steps.back().kv.residencies_ns.size(), 2u);
    EXPECT_GT(h.steps.back().kv.residencies_ns[0], 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::kv_policy_test
