// Further paths of a tree of drafts: how many there is room for, and what becomes of their pages.
#include "engine/speculation/branches.hpp"

#include <gmock/gmock.h>

#include <random>

#include "engine/loop/page_copies.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::branches_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Bench : RowNeighbours {
    explicit Bench(World w = {}) : RowNeighbours(std::move(w)) {}

    Sequence& with_paths(std::vector<DraftPath> further) {
        Sequence& s = decode(4, {50, 51});
        drafts.of(s.id).branches = std::move(further);
        return s;
    }
    std::vector<std::pair<size_t, DraftPath>> forked() { // items, paths
        std::vector<std::pair<size_t, DraftPath>> out;
        for (const Branch& b : part.all()) out.emplace_back(b.item, DraftPath(b.path().begin(), b.path().end()));
        return out;
    }
    Branches part{settings, kv, drafts, draft_kv, context};
};

using Forked = std::vector<std::pair<size_t, DraftPath>>;

TEST(Branches, SecondPathsOfAllComeBeforeTheThird) {
    World w;
    w.blocks = 32;
    Bench b(std::move(w));
    Sequence &first = b.with_paths({{60}, {70}}), &second = b.with_paths({{80}, {90}});
    const std::vector<Placed> step = {Bench::all_of(first), Bench::all_of(second)};
    b.part.fork(step);
    EXPECT_EQ(b.forked(), (Forked{{0, {60}}, {1, {80}}, {0, {70}}, {1, {90}}}));
    EXPECT_EQ(b.report().drafts.branches, 4u);
    EXPECT_EQ(b.report().work.decode_tokens, 8u) << "the newest token is computed again for each";
}

TEST(Branches, TakeOnlyTheSeatsThatAStepLeavesFree) {
    World w;
    w.settings.max_num_seqs = 3;
    Bench b(std::move(w));
    Sequence& s = b.with_paths({{60}, {70}, {80}});
    const std::vector<Placed> step = {Bench::all_of(s)};
    b.part.fork(step);
    EXPECT_EQ(b.part.all().size(), 2u);
    EXPECT_EQ(b.report().drafts.dropped_branches, 1u);
}

TEST(Branches, TakeOnlyTheTokensThatAStepLeavesFree) {
    World w;
    w.settings.max_num_batched_tokens = 7; // of which the first path takes 3
    Bench b(std::move(w));
    Sequence& s = b.with_paths({{60, 61, 62, 63}, {70, 71, 72}});
    const std::vector<Placed> step = {Bench::all_of(s)};
    b.part.fork(step);
    EXPECT_EQ(b.forked(), (Forked{{0, {70, 71, 72}}})) << "one of five tokens does not fit, one of four does";
    EXPECT_EQ(b.report().drafts.dropped_branches, 1u);
}

TEST(Branches, WithoutPagesAPathIsDroppedAndHoldsNone) {
    World w;
    w.blocks = 3;
    Bench b(std::move(w));
    Sequence& s = b.with_paths({{60, 61, 62, 63}, {70}}); // two pages are held; a path writes to one of its own, or two
    const std::vector<Placed> step = {Bench::all_of(s)};
    b.part.fork(step);
    EXPECT_EQ(b.forked(), (Forked{{0, {70}}}));
    EXPECT_EQ(b.kv.pool().used(), 3u);
    b.part.drop();
    EXPECT_EQ(b.kv.pool().used(), 2u);
    EXPECT_THAT(b.part.all(), IsEmpty());
    const kv::BlockTable* tables[] = {&s.kv.table};
    const auto sound = b.kv.audit(tables);
    EXPECT_TRUE(sound) << sound.error();
}

TEST(Branches, OfASequenceThatComputesAPromptThereAreNone) {
    Bench b;
    Sequence& s = b.with_paths({{60}});
    const std::vector<Placed> chunk = {{&s, 2, s.confirmed(), 0}};
    b.part.fork(chunk);
    EXPECT_THAT(b.part.all(), IsEmpty());
}

TEST(Branches, UseTheRowsOfThePathsBeforeThemAsFarAsTheyAgree) {
    World w;
    w.blocks = 32;
    Bench b(std::move(w));
    Sequence& s = b.with_paths({{50, 60, 61}, {50, 60, 70}, {80}});
    const std::vector<Placed> step = {Bench::all_of(s)};
    b.part.fork(step);
    ASSERT_EQ(b.part.all().size(), 3u);
    EXPECT_EQ(b.part.all()[0].shared, 1u);
    EXPECT_EQ(b.part.all()[1].shared, 2u);
    EXPECT_EQ(b.part.all()[2].shared, 0u);
}

// Whatever the tree: the tokens taken are those that the model makes one by one, as far as any path says them before.
TEST(Branches, FollowTheModelAsFarAsAnyPathDoesOverRandomTrees) {
    std::mt19937 draw(2);
    const auto model = [](const std::vector<TokenId>& before, uint32_t trial) {
        uint32_t h = trial * 2654435761u + 1;
        for (const TokenId t : before) h = (h ^ static_cast<uint32_t>(t)) * 2654435761u + 12345;
        return 50 + static_cast<TokenId>(h >> 20) % 2;
    };
    size_t won = 0, longest = 0;
    for (uint32_t trial = 0; trial < 2000; ++trial) {
        World w;
        w.blocks = 64;
        Bench b(std::move(w));
        std::vector<DraftPath> paths;
        for (uint32_t i = 1 + draw() % 5; i > 0; --i) {
            DraftPath path(1 + draw() % 4);
            for (TokenId& t : path) t = 50 + static_cast<TokenId>(draw() % 2);
            add_path(paths, std::move(path), 5);
        }
        Sequence& s = b.decode(4, paths[0]);
        b.drafts.of(s.id).branches.assign(paths.begin() + 1, paths.end());
        std::vector<Placed> step = {Bench::all_of(s)};
        b.part.fork(step);
        ASSERT_EQ(b.part.all().size(), paths.size() - 1);
        StepSamples samples;
        samples.clear(40, 0);
        const auto begin_of = [](const DraftPath& path, uint32_t n) {
            return std::vector<TokenId>(path.begin(), path.begin() + n);
        };
        uint32_t row = 0;
        for (; row < step[0].rows; ++row) samples.tokens[row] = model(begin_of(paths[0], row), trial);
        for (size_t i = 0; i < b.part.all().size(); ++i) {
            Branch& path = b.part.all()[i];
            path.first_row = row;
            for (uint32_t depth = path.shared + 1; depth <= path.drafts; ++depth, ++row)
                samples.tokens[path.row_after(depth)] = model(begin_of(paths[i + 1], depth), trial);
        }
        std::vector<TokenId> expected, agreed;
        for (bool goes_on = true; goes_on;) {
            expected.push_back(model(agreed, trial));
            goes_on = std::ranges::any_of(paths, [&](const DraftPath& path) {
                return common_length(path, expected) == expected.size();
            });
            if (goes_on) agreed = expected;
        }
        const Branches::Followed& followed = b.part.follow(step, 0, samples);
        std::vector<TokenId> taken;
        for (const uint32_t r : followed.rows) taken.push_back(samples.tokens[r]);
        ASSERT_EQ(taken, expected) << trial;
        const auto path = followed.winner ? followed.winner->path() : std::span<const TokenId>(paths[0]);
        ASSERT_EQ(common_length(path, agreed), agreed.size()) << "their KV is the path's " << trial;
        won += followed.winner != nullptr;
        longest = std::max(longest, taken.size());
    }
    EXPECT_GT(won, 300u);
    EXPECT_EQ(longest, 5u);
}

TEST(Branches, APathThatWinsKeepsTheBlockThatCanBeFound) {
    World w;
    w.caching = kv::PrefixCaching::kOn;
    Bench b(std::move(w));
    Sequence& s = b.run(3, 3); // its newest token fills the first block
    s.tokens.insert(s.tokens.end(), {7, 50});
    s.drafts = 1;
    ASSERT_TRUE(b.kv.tables().grow(s.kv.table, 5));
    b.drafts.of(s.id).branches = {{60, 61}};
    b.kv.prefixes().cache_full_blocks(s.kv.table, s.confirmed_tokens());
    const auto named = s.kv.table.pages[0][0];
    const std::vector<Placed> step = {Bench::all_of(s)};
    b.part.fork(step);
    ASSERT_EQ(b.part.all().size(), 1u);
    const auto own = b.part.all()[0].table.pages[0][1];
    b.part.take_over(s, b.part.all()[0]);
    EXPECT_THAT(s.kv.table.pages[0], ElementsAre(named, own));
    EXPECT_EQ(s.kv.table.keys.size(), 1u);
    b.part.drop();
    const kv::BlockTable* tables[] = {&s.kv.table};
    const auto sound = b.kv.audit(tables);
    EXPECT_TRUE(sound) << sound.error();
}

TEST(PageCopies, AreMadeAtOnceWhereNoStepComesToMakeThem) {
    World w;
    w.slots = 4;
    Bench b(std::move(w));
    BatchBuilder batches{{b.form, b.kv, b.rows, b.constraints, b.prompt_logprobs, b.pooling, b.branches, b.draft_kv,
                          Bench::kVocab, b.context}};
    PageCopies copies(batches, b.executor, b.kv);
    ASSERT_TRUE(copies.flush());
    EXPECT_EQ(b.executor.submitted, 0u) << "there is nothing to copy";
    Sequence& s = b.run(8, 8);
    ASSERT_TRUE(b.kv.swap().out(s.kv.table, 8, s.kv.swapped));
    b.executor.fails = "the link is gone";
    const auto failed = copies.flush();
    ASSERT_FALSE(failed);
    EXPECT_EQ(b.kv.copies().copies().size(), 2u) << "they are still to be made";
    ASSERT_TRUE(copies.flush());
    EXPECT_EQ(b.executor.submitted, 1u);
    EXPECT_TRUE(b.kv.copies().copies().empty());
    EXPECT_TRUE(b.executor.tokens_of_steps.empty()) << "a batch of copies has no tokens";
}

}  // namespace
}  // namespace patchbay::engine::testing::branches_test
