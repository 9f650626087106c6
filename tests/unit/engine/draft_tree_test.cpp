// What the host makes of the drafts and parents that a proposer writes.
#include "engine/speculation/draft_tree.hpp"

#include <gmock/gmock.h>

#include "patchbay/sdk/philox.hpp"

namespace patchbay::engine::draft_tree_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Drafts = std::vector<TokenId>;
using Parents = std::vector<int32_t>;

constexpr TreeLimits kLimits{.max_drafts = 3, .max_paths = 4, .vocab_size = 100};

DraftTree of(const Drafts& drafts, const Parents& parents, TreeLimits limits = kLimits) {
    return tree_of(drafts, parents, limits);
}

TEST(DraftTree, HasAPathForEachDraftThatNoneFollows) {
    EXPECT_THAT(of({}, {}).paths, IsEmpty());
    EXPECT_THAT(of({5, 6, 7}, {-1, 0, 1}).paths, ElementsAre(Drafts{5, 6, 7}));
    const DraftTree t = of({5, 6, 7, 8, 9}, {-1, 0, 0, -1, 2});
    EXPECT_THAT(t.paths, ElementsAre(Drafts{5, 6}, Drafts{8}, Drafts{5, 7, 9})) << "in the order of their last drafts";
    EXPECT_TRUE(t.sound);
}

TEST(DraftTree, NamesNoPathTwice) {
    EXPECT_THAT(of({5, 5, 6, 7}, {-1, -1, 0, 1}).paths, ElementsAre(Drafts{5, 6}, Drafts{5, 7}));
    EXPECT_THAT(of({5, 5, 6}, {-1, -1, 1}).paths, ElementsAre(Drafts{5, 6})) << "the first is its beginning";
    EXPECT_THAT(of({5, 6, 5}, {-1, 0, -1}).paths, ElementsAre(Drafts{5, 6}));
}

TEST(DraftTree, IsCutToItsLimits) {
    EXPECT_THAT(of({1, 2, 3, 4, 5}, {-1, 0, 1, 2, 3}).paths, ElementsAre(Drafts{1, 2, 3}));
    EXPECT_THAT(of({1, 2, 3, 4, 5}, {-1, -1, -1, -1, -1}).paths,
                ElementsAre(Drafts{1}, Drafts{2}, Drafts{3}, Drafts{4}));
    EXPECT_THAT(of({1, 100, 3}, {-1, 0, -1}).paths, ElementsAre(Drafts{1})) << "no token: the rest is left out";
    EXPECT_THAT(of({1, -1, 3}, {-1, 0, -1}).paths, ElementsAre(Drafts{1}));
    EXPECT_THAT(of({1, 2}, {-1, 0}, {0, 4, 100}).paths, IsEmpty());
}

TEST(DraftTree, EndsAtAParentThatIsNone) {
    for (const int32_t parent : {-2, 2, 3, INT32_MAX, INT32_MIN}) {
        const DraftTree t = of({1, 2, 3, 4}, {-1, 0, parent, -1});
        EXPECT_FALSE(t.sound) << parent;
        EXPECT_THAT(t.paths, ElementsAre(Drafts{1, 2})) << parent;
    }
    EXPECT_FALSE(of({1}, {0}).sound);
    EXPECT_THAT(of({1}, {0}).paths, IsEmpty());
}

TEST(DraftTree, OfAnyNumbersKeepsItsLimits) {
    for (uint64_t seed = 0; seed < 2000; ++seed) {
        uint64_t at = 0;
        const auto below = [&](uint32_t n) { return draw(seed, at++, Stream::kTest, 0)[0] % n; };
        Drafts drafts(below(40));
        Parents parents(drafts.size());
        for (size_t k = 0; k < drafts.size(); ++k) {
            drafts[k] = static_cast<TokenId>(below(4)) - (below(60) == 0);
            parents[k] = static_cast<int32_t>(below(static_cast<uint32_t>(k) + 1)) - 1;
            if (below(60) == 0) parents[k] = static_cast<int32_t>(below(UINT32_MAX));
        }
        const DraftTree t = of(drafts, parents);
        ASSERT_LE(t.paths.size(), kLimits.max_paths) << seed;
        for (const DraftPath& a : t.paths) {
            ASSERT_FALSE(a.empty()) << seed;
            ASSERT_LE(a.size(), kLimits.max_drafts) << seed;
            for (const DraftPath& b : t.paths)
                if (&a != &b) { ASSERT_LT(common_length(a, b), a.size()) << "one begins another, seed " << seed; }
        }
    }
}

}  // namespace
}  // namespace patchbay::engine::draft_tree_test
