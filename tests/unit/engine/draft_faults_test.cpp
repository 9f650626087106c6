// Draft models whose passes fail, on a device whose sampler fails on demand.
#include <algorithm>
#include <tuple>

#include "unit/engine/draft_fixture.hpp"

namespace patchbay::engine::draft_faults_test {
namespace {

using namespace testing;

// The content of its pages is unknown then: sequences of that pass go on without drafts, others with theirs.
TEST(DraftModel, APassThatFailsCostsDraftsAndNoText) {
    config::EngineConfig plain = tiny_model();
    plain.device = {"replays", {}};
    plain.attention = {"replays", {}};
    plain.sampler = {"replays", {}};
    plain.engine.enable_prefix_caching = false;
    config::EngineConfig c = plain;
    c.proposer = config::PluginChoice{
        "draft_model",
        {{"model", folder_of(c.model.shape, "draft_that_fails")}, {"load_format", "dummy"}, {"dtype", "float32"}}};
    c.engine.num_speculative_tokens = 4;
    c.sampler.settings = {{"fails_at", "27"}, {"fails_once", "true"}}; // drafts of a place come before its token
    Harness h(c), alone(plain);
    const RequestId first = h.add(random_prompt(1, 20), greedy(16)), second = h.add(random_prompt(2, 30), greedy(16));
    uint32_t before = 0, after = 0, faults = 0;
    while (h.engine->has_unfinished()) {
        const StepReport r = h.step();
        (faults > 0 ? after : before) += r.drafts.drafted_tokens;
        EXPECT_EQ(r.drafts.accepted_tokens, r.drafts.drafted_tokens) << "it drafts for itself";
        faults += r.calls.proposer_faults;
    }
    EXPECT_EQ(faults, 1u);
    EXPECT_GT(before, 0u);
    EXPECT_EQ(after, 0u);
    const auto until_now = static_cast<ptrdiff_t>(h.steps.size());
    const RequestId third = h.add(random_prompt(3, 40), greedy(16));
    h.run(third);
    EXPECT_TRUE(std::any_of(h.steps.begin() + until_now, h.steps.end(),
                            [](const StepReport& r) { return r.drafts.drafted_tokens > 0; }));
    for (const auto& [id, seed, length] : {std::tuple(first, 1, 20u), {second, 2, 30u}, {third, 3, 40u}}) {
        EXPECT_EQ(h.outputs.at(id).finish, FinishReason::kLength);
        EXPECT_EQ(h.outputs.at(id).tokens, alone.run(alone.add(random_prompt(seed, length), greedy(16))).tokens);
    }
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
}

}  // namespace
}  // namespace patchbay::engine::draft_faults_test
