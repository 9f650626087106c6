// Seats and pages of beam searches, and what schedulers are shown of them, without a model.
#include "engine/groups/beam_room.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::beam_room_test {
namespace {

SamplingParams search(uint32_t width) {
    SamplingParams p;
    p.beam_width = p.n = width;
    p.max_tokens = 8;
    return p;
}

struct Bench : QueueNeighbours {
    explicit Bench(World w = {}) : QueueNeighbours(std::move(w)) {}

    // A search whose beams all run, with so many tokens computed of the first one.
    std::vector<Sequence*> add(uint32_t prompt_tokens, uint32_t width, uint32_t computed) {
        std::vector<Sequence*> all = {&run(prompt_tokens, computed, search(width))};
        for (uint32_t i = 1; i < width; ++i) {
            auto made = sequence(next_id++, prompt_tokens, search(width));
            made->tokens = all[0]->tokens;
            made->group = all[0]->id;
            made->index = i;
            made->place = Place::kHeld;
            all.push_back(&sequences.add(std::move(made)));
        }
        beams.add(all);
        beams.seat(*all[0]);
        return all;
    }
    std::vector<pb_sequence> records() {
        std::vector<pb_sequence> out;
        for (const Sequence* s : sequences.running()) out.push_back(record_of(*s, {}, 4));
        return out;
    }
};

// Blocks of all beams, each once, while each computes token t; those of the prompt's full blocks are shared.
uint64_t counted(uint32_t window, uint32_t size, uint32_t prompt, uint32_t t, uint32_t width) {
    std::set<std::pair<uint32_t, uint32_t>> blocks; // of which beam, or 0
    for (uint32_t beam = 0; beam < width; ++beam)
        for (uint32_t seen = window > 0 && t + 1 > window ? t + 1 - window : 0; seen <= t; ++seen)
            blocks.emplace((seen / size + 1) * size <= prompt ? 0 : beam, seen / size);
    return blocks.size();
}

TEST(BeamPages, AreAtLeastThoseOfBeamsThatComputeTokenByToken) {
    std::mt19937 draw(3);
    for (int round = 0; round < 400; ++round) {
        const uint32_t window = draw() % 3 == 0 ? 0 : 1 + draw() % 20, size = 1 + draw() % 6, width = 1 + draw() % 4;
        const uint32_t prompt = 1 + draw() % 30, tokens = prompt + draw() % 30;
        const std::vector<uint32_t> windows = {window};
        const BeamPages pages(windows, size);
        uint64_t max = 0;
        for (uint32_t t = prompt; t < tokens; ++t) max = std::max(max, counted(window, size, prompt, t, width));
        EXPECT_GE(pages.at_most(prompt, tokens, width, true), max)
            << "window " << window << ", blocks of " << size << ", prompt " << prompt << ", tokens " << tokens;
        if (window == 0 && tokens > prompt) {
            EXPECT_EQ(pages.at_most(prompt, tokens, width, true), max) << "without windows it is that number";
        }
    }
}

TEST(BeamPages, OfAWindowAreFewerThanOfAllTokens) {
    const std::vector<uint32_t> window = {8}, none = {0};
    EXPECT_EQ(BeamPages(none, 4).at_most(40, 60, 2, true), 20u) << "10 of the prompt, 5 of each";
    EXPECT_LE(BeamPages(window, 4).at_most(40, 60, 2, true), 8u);
    EXPECT_EQ(BeamPages(window, 4).at_most(40, 60, 2, false), 15u) << "the first one, computed anew in one step";
}

TEST(BeamRoom, ShowsAPromptOfASearchAllThatItCanHaveAlone) {
    World w;
    w.blocks = 10;
    Bench b(std::move(w));
    b.run(20, 20); // which holds half of the pages
    b.add(30, 2, 0);
    auto records = b.records();
    b.beams.room().limit_chunks(records);
    EXPECT_EQ(records[0].computed_tokens, 20u) << "no beam";
    EXPECT_EQ(records[1].computed_tokens, 0u) << "it may drive out what is not of its search";
}

TEST(BeamRoom, ShowsABeamThatComesBackSoManyTokensAsThereArePagesFor) {
    World w;
    w.blocks = 8;
    Bench b(std::move(w));
    const auto all = b.add(8, 2, 8);
    StepSamples samples;
    samples.clear(1, static_cast<uint32_t>(all[0]->sampling.params.logprobs));
    for (size_t i = 0; i < samples.top_tokens.size(); ++i)
        samples.top_tokens[i] = static_cast<TokenId>(50 + i), samples.top_logprobs[i] = -static_cast<float>(i + 1);
    ASSERT_FALSE(b.beams.take({all[0], 8, 8, 1}, samples, "sampler 'fake'"));
    for (Sequence* s : all) s->tokens.resize(60, 7); // which they had before, and compute anew
    auto records = b.records();
    const auto before = records;
    b.beams.room().limit_chunks(records);
    uint64_t shown = 0;
    for (size_t i = 0; i < records.size(); ++i) {
        EXPECT_GE(records[i].computed_tokens, before[i].computed_tokens);
        shown += records[i].prompt_tokens + records[i].output_tokens - records[i].computed_tokens;
    }
    EXPECT_LE(shown, (b.kv.pool().free() + 2) * 4u) << "and a block that each has or gets in any case";
    EXPECT_GT(shown, 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::beam_room_test
