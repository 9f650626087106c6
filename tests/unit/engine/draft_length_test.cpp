// The number of drafts that an engine chooses: the same in each run, and no text hangs on it.
#include <gtest/gtest.h>

#include <vector>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing::draft_length_test {
namespace {

// What choose() does in a run, on a device that charges time: the same each time, and what metrics record.
TEST(DraftLength, OfAnEngineIsTheSameInEachRunAndChangesNoText) {
    const auto run = [](config::DraftMode mode, double rate) {
        auto c = tiny_model();
        c.model.dtype = config::DType::kBf16;
        c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e9"},
                            {"memory_bytes", "100000000"}}};
        c.proposer = config::PluginChoice{"last_token", {}};
        c.engine.num_speculative_tokens = 4;
        c.speculative = {mode, config::Verification::kSynthetic, std::vector<double>(4, rate)};
        Harness h(c);
        for (uint64_t i = 0; i < 3; ++i) h.add(random_prompt(i, 10), greedy(200));
        h.run_all();
        std::vector<uint32_t> lengths;
        for (const StepReport& r : h.steps) lengths.push_back(r.drafts.length);
        return lengths;
    };
    const auto lengths = run(config::DraftMode::kAdaptive, 0.05);
    EXPECT_EQ(lengths, run(config::DraftMode::kAdaptive, 0.05));
    EXPECT_LT(lengths.back(), 2u);
    for (const uint32_t k : run(config::DraftMode::kFixed, 0.05)) EXPECT_EQ(k, 4u);
    auto c = tiny_model();
    Harness plain(c);
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 4;
    c.speculative.mode = config::DraftMode::kAdaptive;
    Harness h(c);
    for (uint64_t i = 0; i < 4; ++i)
        for (Harness* each : {&plain, &h}) each->add(random_prompt(i, 30), i % 2 ? seeded(i, 60) : greedy(60));
    plain.run_all();
    h.run_all();
    for (const auto& [id, o] : h.outputs) EXPECT_EQ(o.tokens, plain.outputs.at(id).tokens) << id;
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_length_test
