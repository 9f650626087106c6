// Beam searches of models with sliding windows: served where they fit at their most, since windows free pages.
#include <gmock/gmock.h>

#include <random>

#include "unit/engine/beam_searches.hpp"
#include "unit/engine/report_sums.hpp"

namespace patchbay::engine::beam_windows_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// Layers of which those from `full` on have a window.
config::EngineConfig windowed_model(uint32_t layers, uint32_t full, uint32_t window) {
    auto c = tiny_model();
    c.model.shape["architectures.0"] = "Qwen2ForCausalLM";
    c.model.shape["num_hidden_layers"] = std::to_string(layers);
    c.model.shape.insert({{"sliding_window", std::to_string(window)},
                          {"use_sliding_window", "true"},
                          {"max_window_layers", std::to_string(full)}});
    c.engine.block_size = 4;
    return c;
}

SamplingParams whole_search(uint32_t width, uint32_t max_tokens) {
    SamplingParams p = beams(width, max_tokens);
    p.ignore_eos = true;
    return p;
}

Result<RequestId> offer(Harness& h, const std::vector<TokenId>& prompt, const SamplingParams& p) {
    Request r;
    r.prompt = prompt;
    r.sampling = p;
    return h.engine->add_request(r);
}

// False: some have not ended after so many steps.
bool ends(Harness& h, int max_steps) {
    for (int steps = 0; h.engine->has_unfinished() && steps < max_steps; ++steps) {
        h.step();
        const auto sound = h.engine->audit();
        if (!sound) throw std::runtime_error(sound.error());
    }
    return !h.engine->has_unfinished();
}

void expect_same(const Harness& got, RequestId id, const Harness& expected, RequestId as) {
    const uint32_t n = static_cast<uint32_t>(
        std::ranges::count_if(expected.others, [&](const auto& o) { return o.first.first == as; }));
    for (uint32_t i = 0; i <= n; ++i) {
        EXPECT_EQ(output(got, id, i).tokens, output(expected, as, i).tokens);
        EXPECT_EQ(output(got, id, i).finish, output(expected, as, i).finish);
    }
}

// The first one keeps for the others what a window has passed, though it comes back in many steps.
TEST(BeamWindows, ThatComeBackShareWindowsToo) {
    auto c = windowed_model(2, 1, 8);
    c.engine.num_blocks = 740; // of them a search may take 666
    c.engine.max_num_seqs = 144;
    c.engine.enable_prefix_caching = false;
    c.engine.long_prefill_token_threshold = 8;
    Harness h(c);
    c.engine.num_blocks = 4096;
    Harness ample(c);
    SamplingParams p = whole_search(24, 48);
    p.n = 1;
    std::vector<RequestId> ids;
    for (uint64_t i = 0; i < 6; ++i) {
        ids.push_back(h.add(random_prompt(i, 180), p));
        EXPECT_EQ(ample.add(random_prompt(i, 180), p), ids.back());
    }
    for (int steps = 0; h.engine->has_unfinished() && steps < 5000; ++steps) h.step();
    EXPECT_FALSE(h.engine->has_unfinished());
    EXPECT_GT(sum_over(h.steps, &PreemptionReport::preemptions), 0u);
    ample.run_all();
    EXPECT_EQ(sum_over(ample.steps, &PreemptionReport::preemptions), 0u);
    for (const RequestId id : ids) expect_same(h, id, ample, id);
}

TEST(BeamWindows, ThatFitSinceWindowsFreePagesAreServed) {
    const auto prompt = random_prompt(1, 100);
    const SamplingParams p = whole_search(4, 40);
    auto c = windowed_model(2, 0, 8);
    Harness ample(c);
    const RequestId expected = ample.add(prompt, p);
    ample.run_all();
    c.engine.num_blocks = 12; // 3 of each beam, its own once the prompt is outside the window; without windows 65
    Harness h(c);
    const RequestId id = h.add(prompt, p);
    ASSERT_TRUE(ends(h, 1000));
    expect_same(h, id, ample, expected);
    EXPECT_EQ(sum_over(h.steps, &PreemptionReport::preemptions), 0u);
    c.engine.num_blocks -= 1;
    Harness small(c);
    EXPECT_EQ(offer(small, prompt, p).error(),
              "beam_width is 4: beams of up to 140 tokens may take 12 blocks, of which there are 11");
}

// What the first beam keeps for the others while it is computed anew may be more than all of them take: 10 blocks are
// those of 55 tokens from the prompt's last window on.
TEST(BeamWindows, ThatWouldFitOnlyUntilTheyArePreemptedAreRefused) {
    const auto prompt = random_prompt(1, 20);
    const SamplingParams p = whole_search(2, 36);
    auto c = windowed_model(2, 0, 4);
    c.engine.enable_prefix_caching = false;
    c.engine.watermark = 0;
    Harness ample(c);
    const RequestId expected = ample.add(prompt, p);
    ample.run_all();
    c.engine.num_blocks = 10;
    Harness h(c);
    for (uint64_t i = 0; i < 4; ++i) h.add(random_prompt(i, 20), greedy(60));
    const RequestId id = h.add(prompt, p);
    ASSERT_TRUE(ends(h, 5000));
    expect_same(h, id, ample, expected);
    EXPECT_GT(h.outputs.at(id).preemptions, 0u);
    c.engine.num_blocks -= 1;
    Harness small(c);
    EXPECT_THAT(offer(small, prompt, p).error(), HasSubstr("may take 10 blocks"));
}

struct RandomSearch {
    explicit RandomSearch(uint64_t trial)
        : draw_(trial), config(windowed_model(1 + below(4), below(3), 2 + below(12))) {
        config.engine.block_size = 1 + below(5);
        config.engine.max_num_batched_tokens = 1 + below(4) * 20;
        config.engine.max_num_seqs = 8;
        config.engine.long_prefill_token_threshold = below(2) * (1 + below(9));
        config.engine.enable_prefix_caching = below(2) == 0;
        config.engine.watermark = below(2) * 0.1;
        if (below(4) == 0) {
            config.engine.enable_chunked_prefill = false;
            config.engine.max_num_batched_tokens = 512;
        }
        const char* schedulers[] = {"fcfs", "priority", "srpt", "mlfq", "static", "orca", "prefill_first", "sarathi"};
        config.scheduler = {schedulers[below(8)], {}};
        prompt = random_prompt(trial, 1 + below(50));
        sampling = whole_search(1 + below(5), 1 + below(30));
    }
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(draw_() % n); }

    std::mt19937 draw_;
    config::EngineConfig config;
    std::vector<TokenId> prompt;
    SamplingParams sampling;

    bool is_served_with(uint32_t blocks) const {
        auto c = config;
        c.engine.num_blocks = blocks;
        try {
            Harness h(c);
            return bool(offer(h, prompt, sampling));
        } catch (const std::runtime_error&) {
            return false; // not even a sequence fits
        }
    }
    uint32_t fewest_blocks() const {
        uint32_t low = 0, high = 2048;
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            (is_served_with(middle) ? high : low) = middle;
        }
        return high;
    }
};

TEST(BeamWindows, ThatAreServedEndInTheFewestBlocksOverRandomSearches) {
    uint64_t preemptions = 0;
    std::vector<uint64_t> trials(30);
    std::iota(trials.begin(), trials.end(), 0);
    // Where chunks leave no pages for others, or what is left of them is not what it seems, searches preempt in turn.
    trials.insert(trials.end(), {1748, 3336});
    for (const uint64_t trial : trials) {
        const RandomSearch random(trial);
        auto c = random.config;
        c.engine.num_blocks = 4096;
        Harness ample(c);
        const RequestId expected = ample.add(random.prompt, random.sampling);
        ample.run_all();
        c.engine.num_blocks = random.fewest_blocks();
        SCOPED_TRACE("trial " + std::to_string(trial) + " with " + std::to_string(c.engine.num_blocks) + " blocks");
        Harness alone(c);
        const RequestId id = alone.add(random.prompt, random.sampling);
        ASSERT_TRUE(ends(alone, 3000));
        expect_same(alone, id, ample, expected);
        EXPECT_EQ(sum_over(alone.steps, &PreemptionReport::preemptions), 0u);
        Harness together(c);
        std::vector<RequestId> ids;
        for (int i = 0; i < 3; ++i) {
            ids.push_back(together.add(random.prompt, random.sampling));
            (void)offer(together, random_prompt(trial + static_cast<uint64_t>(i), 5), greedy(3)); // if it fits
            for (int steps = 0; steps < 3; ++steps) together.step();
        }
        ASSERT_TRUE(ends(together, 20000));
        for (const RequestId one : ids) expect_same(together, one, ample, expected);
        preemptions += sum_over(together.steps, &PreemptionReport::preemptions);
    }
    EXPECT_GT(preemptions, 100u);
}

}  // namespace
}  // namespace patchbay::engine::beam_windows_test
