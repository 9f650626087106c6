// What of a proposer's drafts a sequence takes, and what is recorded of them.
#include "engine/speculation/draft_appender.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "engine/speculation/draft_records.hpp"
#include "engine/speculation/draft_verification.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::draft_appender_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Appending : RowNeighbours {
    explicit Appending(config::Verification by = config::Verification::kMatch) {
        speculation.rejection_sample_method = by;
    }
    std::vector<TokenId> append(const std::vector<TokenId>& given, const DrawnDrafts& from) {
        part.append_chain(s, given, from);
        return {s.tokens.end() - static_cast<ptrdiff_t>(s.drafts), s.tokens.end()};
    }

    static constexpr uint32_t kTokens = 8; // vocabulary
    config::SpeculationSettings speculation;
    DraftVerification verification{speculation, kTokens, drafts};
    DraftAppender part{{kTokens, 2, constraints, verification, drafts, context}};
    Sequence& s = decode(4);
    const std::vector<uint8_t> none_drawn = std::vector<uint8_t>(3, 0);
};

TEST(DraftAppender, AChainEndsAtATokenThatIsNone) {
    Appending a;
    EXPECT_THAT(a.append({5, 8, 6}, {a.none_drawn, {}}), ElementsAre(5));
    EXPECT_EQ(a.s.confirmed(), 5u);
}

TEST(DraftAppender, RecordsWhatEachDraftWasDrawnFrom) {
    Appending a(config::Verification::kRejection);
    std::vector<float> probs(size_t{3} * Appending::kTokens, 0);
    probs[5] = 0.75f;
    probs[size_t{2} * Appending::kTokens + 1] = 1; // from which 7 cannot have been drawn
    const std::vector<uint8_t> drawn = {1, 0, 1};
    EXPECT_THAT(a.append({5, 6, 7}, {drawn, probs}), ElementsAre(5, 6, 7));
    const DraftRecord& r = a.drafts.of(a.s.id);
    EXPECT_THAT(r.drawn, ElementsAre(1, 0, 0));
    ASSERT_EQ(r.probs.size(), probs.size());
    EXPECT_EQ(r.probs[5], 0.75f);
    EXPECT_EQ(r.probs[size_t{2} * Appending::kTokens + 1], 0);
}

TEST(DraftAppender, OfATreeTheFirstPathIsAppendedAndTheOthersAreBranches) {
    Appending a;
    a.part.append_tree(a.s, {{1, 2, 3}, {1, 4}, {5}});
    EXPECT_EQ(a.s.drafts, 3u);
    const auto branches = a.drafts.branches(a.s.id, a.s.drafts);
    EXPECT_THAT(std::vector(branches.begin(), branches.end()), ElementsAre(DraftPath{1, 4})) << "two paths at most";
    a.s.drafts = 0;
    a.part.append_tree(a.s, {});
    EXPECT_THAT(a.drafts.branches(a.s.id, a.s.drafts), IsEmpty());
    EXPECT_EQ(a.s.drafts, 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_appender_test
