// What schedulers are shown of waiting requests' cached prefixes is true when they plan.
#include <gmock/gmock.h>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing::prefix_hints_test {
namespace {

constexpr uint32_t kBlock = 8; // of tiny_model()

std::vector<TokenId> prompt_of(uint64_t prefix, uint32_t blocks, TokenId last) {
    std::vector<TokenId> out = random_prompt(prefix, blocks * kBlock);
    out.push_back(last);
    return out;
}

TEST(PrefixHints, OfTheFirstWhoWaitAreThoseOfNow) {
    auto c = tiny_model();
    c.engine.max_num_seqs = 1;
    Harness h(c);
    for (int i = 0; i < 200; ++i) h.add(prompt_of(1, 2, i), greedy(3));
    h.step();
    auto waiting = h.engine->view().waiting;
    ASSERT_EQ(waiting.size(), 199u);
    for (size_t i = 0; i < waiting.size(); ++i) {
        EXPECT_EQ(waiting[i].cached_tokens, i < 128 ? 2 * kBlock : 0) << i;
        EXPECT_EQ(waiting[i].cached_pages_in_use, i < 128 ? 2u : 0u) << i;
    }
    h.step();
    h.step();
    waiting = h.engine->view().waiting; // no sequence runs
    EXPECT_EQ(waiting[0].cached_tokens, 2 * kBlock);
    EXPECT_EQ(waiting[0].cached_pages_in_use, 0u);
    h.step();
    waiting = h.engine->view().waiting;
    EXPECT_EQ(waiting[127].cached_tokens, 2 * kBlock) << "it has come to the front";
    EXPECT_EQ(waiting[128].cached_tokens, 0u);
}

TEST(PrefixHints, KnowNothingWhereNothingMayBeRead) {
    auto c = tiny_model();
    c.engine.max_num_seqs = 1;
    Harness h(c);
    h.add(prompt_of(1, 2, 1), greedy(20));
    SamplingParams p = greedy(2);
    p.prompt_logprobs = 0;
    h.add(prompt_of(1, 2, 2), p);
    p = greedy(2);
    p.skip_reading_prefix_cache = true;
    h.add(prompt_of(1, 2, 3), p);
    Request salted;
    salted.prompt = prompt_of(1, 2, 4);
    salted.sampling = greedy(2);
    salted.cache_salt = "other";
    h.add(salted);
    h.step();
    for (const pb_sequence& s : h.engine->view().waiting) EXPECT_EQ(s.cached_tokens, 0u) << s.id;
    h.run_all();
}

// A policy may order by what is cached: the shortest rest first.
TEST(PrefixHints, FollowWhatIsEvicted) {
    auto c = tiny_model();
    c.engine.max_num_seqs = 1;
    c.engine.num_blocks = 6;
    c.engine.max_model_len = 48;
    c.engine.watermark = 0;
    Harness h(c);
    h.run(h.add(prompt_of(1, 3, 1), greedy(1)));
    h.add(prompt_of(2, 3, 1), greedy(16)); // grows to five blocks
    h.add(prompt_of(1, 3, 2), greedy(1));
    std::vector<uint32_t> seen;
    while (seen.empty() || seen.back() != kBlock) {
        h.step();
        const auto waiting = h.engine->view().waiting;
        ASSERT_EQ(waiting.size(), 1u);
        if (seen.empty() || seen.back() != waiting[0].cached_tokens) seen.push_back(waiting[0].cached_tokens);
        ASSERT_LT(h.steps.size(), 40u);
    }
    EXPECT_THAT(seen, ::testing::ElementsAre(2 * kBlock, kBlock)) << "blocks go from the deep end";
    h.run_all();
}

}  // namespace
}  // namespace patchbay::engine::testing::prefix_hints_test
