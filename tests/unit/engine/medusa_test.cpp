// Drafts by Medusa's heads, which keep no KV: the same texts as without them, and what is refused.
#include <gmock/gmock.h>

#include "unit/engine/draft_fixture.hpp"

namespace patchbay::engine::testing::medusa_test {
namespace {

using ::testing::HasSubstr;

config::EngineConfig target() { // small and random, and soon says the same again and again
    auto c = demo("tests/golden/models/llama_gqa_tied");
    c.model.tokenizer = "none";
    return c;
}

config::EngineConfig drafted(config::EngineConfig c, uint32_t k) {
    c.proposer = config::PluginChoice{"medusa", {{"model", repository("tests/golden/models/medusa")}}};
    c.engine.num_speculative_tokens = k;
    return c;
}

std::vector<Case> short_cases() {
    std::vector<Case> all = cases(12, 256);
    for (Case& one : all) one.sampling.ignore_eos = true;
    return all;
}

TEST(Medusa, ChangesNoTextWhateverElseHappens) {
    const auto all = short_cases();
    const Ran without = run(target(), all);
    const auto check = [&](const config::EngineConfig& c, const std::string& what) {
        const Ran with = run(c, all);
        expect_same_texts(with, without, what);
        EXPECT_GT(with.drafted, 100u) << what;
        return with;
    };
    const Ran chains = check(drafted(target(), 3), "all at once");
    auto c = drafted(target(), 3);
    c.speculative.max_paths = 4;
    const Ran trees = check(c, "trees");
    EXPECT_GT(trees.drafted, chains.drafted * 2) << "each path but the first has three drafts more, two or one";
    EXPECT_GE(trees.accepted, chains.accepted);
    c = drafted(target(), 2);
    c.engine.max_num_batched_tokens = 13;
    check(c, "chunks");
    c = drafted(target(), 3);
    c.engine.max_num_seqs = 1;
    check(c, "one after the other");
    c = drafted(target(), 3);
    c.engine.num_blocks = 40;
    c.engine.max_model_len = 128;
    c.engine.watermark = 0;
    EXPECT_GT(check(c, "few pages").preemptions, 0u);
}

TEST(Medusa, DraftsAsManyAsItHasHeads) {
    const Ran r = run(drafted(target(), 8), short_cases());
    EXPECT_GT(r.drafted_at[2], 0u);
    EXPECT_EQ(r.drafted_at[3], 0u);
}

TEST(Medusa, IsRefusedBesideAModelOfAnotherWidth) {
    auto c = drafted(demo(), 2);
    EXPECT_THAT(refusal(c), HasSubstr("tensor '0.0.linear.weight' is (64, 64) but the model needs (256, 256)"));
}

}  // namespace
}  // namespace patchbay::engine::testing::medusa_test
