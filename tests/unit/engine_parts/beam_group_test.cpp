// What the beams of one search have in common.
#include "engine/groups/beam_group.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::beam_group_test {
namespace {

constexpr uint32_t kPrompt = 5, kWidth = 3;

// A search of three slots, of which the first `open` hold beams. Each has the prompt, and then its own tokens.
struct Bench {
    explicit Bench(size_t open = kWidth)
        : group{BeamSearch({sampling, {}, {}}, {.stops = StopMatcher({}, StopMatcher::Keep::kBefore)}), {}, {}} {
        if (open > 1) { // the one that it begins with goes on in so many ways
            BeamSearch::Candidates next;
            for (size_t i = 0; i < open; ++i) next.push_back({static_cast<TokenId>(i), -1.0f - static_cast<float>(i)});
            group.search.step({next});
        }
        for (RequestId id = 1; id <= kWidth; ++id) {
            made.push_back(sequence(id, kPrompt, sampling));
            made.back()->tokens = made.front()->tokens;
            made.back()->group = 1;
            made.back()->kv.table.held = 2; // pages, which nothing looks into
            group.slots.push_back(made.back().get());
        }
    }
    void append(size_t beam, const std::vector<TokenId>& own) {
        auto& tokens = made[beam]->tokens;
        tokens.insert(tokens.end(), own.begin(), own.end());
    }
    static SamplingParams search() {
        SamplingParams p;
        p.beam_width = p.n = kWidth;
        p.max_tokens = 20;
        return p;
    }

    SamplingParams sampling = search();
    std::vector<std::unique_ptr<Sequence>> made;
    BeamGroup group;
};

TEST(BeamGroup, SharesTokensUpToTheFirstThatDiffers) {
    Bench b;
    b.append(0, {10, 11, 12, 13});
    b.append(1, {10, 11, 20, 13});
    b.append(2, {30, 11, 12, 13});
    EXPECT_EQ(b.group.shared_with_first(1), kPrompt + 2);
    EXPECT_EQ(b.group.shared_with_first(2), kPrompt);
}

TEST(BeamGroup, DoesNotShareTheNewestTokenWhichIsStillToBeComputed) {
    Bench b;
    for (const size_t beam : {0, 1}) b.append(beam, {10, 11});
    EXPECT_EQ(b.group.shared_with_first(1), kPrompt + 1) << "the same tokens";
    b.append(0, {12});
    EXPECT_EQ(b.group.shared_with_first(1), kPrompt + 1) << "and where the first one is longer";
    EXPECT_EQ(b.group.shared_with_first(0), kPrompt + 2);
    EXPECT_EQ(b.group.shared_with_first(2), kPrompt - 1) << "one that is only the prompt";
}

TEST(BeamGroup, NeedsOfTheFirstWhatItsForksBeginWith) {
    Bench b;
    b.append(0, {10, 11, 12});
    b.append(1, {10, 30, 31});
    b.append(2, {10, 11, 20});
    EXPECT_EQ(b.group.needed_from(), UINT32_MAX) << "all have pages";
    b.made[2]->kv.table.held = 0;
    EXPECT_EQ(b.group.needed_from(), kPrompt + 2);
    b.made[1]->kv.table.held = 0;
    EXPECT_EQ(b.group.needed_from(), kPrompt + 1) << "the one that shares least";
    b.made[0]->kv.table.held = 0;
    EXPECT_EQ(b.group.needed_from(), kPrompt + 1) << "its own pages are no one's fork";
}

TEST(BeamGroup, NeedsNothingForSlotsWithoutABeam) {
    Bench b(2);
    ASSERT_EQ(b.group.search.open().size(), 2u);
    b.append(0, {10});
    b.made[2]->kv.table.held = 0;
    EXPECT_EQ(b.group.needed_from(), UINT32_MAX);
    b.made[1]->kv.table.held = 0;
    EXPECT_EQ(b.group.needed_from(), kPrompt - 1);
}

TEST(BeamGroup, IsFoundByAnyOfItsBeamsUntilItEnds) {
    Bench b;
    BeamGroups groups;
    EXPECT_EQ(find_group(groups, *b.made[0]), nullptr);
    groups[1] = std::make_unique<BeamGroup>(BeamGroup{b.group.search, b.group.slots, {}});
    const BeamGroup* const added = groups[1].get();
    for (const auto& s : b.made) EXPECT_EQ(find_group(groups, *s), added) << s->id;
    const auto plain = sequence(8, kPrompt), other = sequence(9, kPrompt, b.sampling);
    plain->group = 1;
    EXPECT_EQ(find_group(groups, *plain), nullptr) << "no beam, whatever its group";
    EXPECT_EQ(find_group(groups, *other), nullptr) << "of another search";
    groups.erase(1);
    EXPECT_EQ(find_group(groups, *b.made[1]), nullptr);
}

}  // namespace
}  // namespace patchbay::engine::testing::beam_group_test
