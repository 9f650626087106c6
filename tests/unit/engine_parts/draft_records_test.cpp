// What is known of drafts besides their tokens.
#include "engine/speculation/draft_records.hpp"

#include <gmock/gmock.h>

namespace patchbay::engine::testing::draft_records_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<DraftPath> branches(const DraftRecords& part, RequestId id, uint32_t drafts) {
    const auto found = part.branches(id, drafts);
    return {found.begin(), found.end()};
}

TEST(DraftRecords, AreOfASequenceUntilItEnds) {
    DraftRecords part;
    EXPECT_THAT(branches(part, 1, 2), IsEmpty()) << "it was never drafted for";
    part.of(1).branches = {DraftPath{5, 6}, DraftPath{7}};
    part.of(2).branches = {DraftPath{8}};
    part.of(1).drawn = {1, 0};
    EXPECT_THAT(branches(part, 1, 2), ElementsAre(DraftPath{5, 6}, DraftPath{7}));
    EXPECT_THAT(part.of(1).drawn, ElementsAre(1, 0)) << "the same record";
    part.erase(1);
    EXPECT_THAT(branches(part, 1, 2), IsEmpty());
    EXPECT_THAT(part.of(1).drawn, IsEmpty());
    EXPECT_THAT(branches(part, 2, 1), ElementsAre(DraftPath{8}));
}

TEST(DraftRecords, OfASequenceWithoutDraftsNameNoBranches) {
    DraftRecords part;
    part.of(1).branches = {DraftPath{5, 6}}; // of drafts that are gone
    EXPECT_THAT(branches(part, 1, 0), IsEmpty());
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_records_test
