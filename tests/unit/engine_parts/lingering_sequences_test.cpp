#include "engine/speculation/lingering_sequences.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::lingering_sequences_test {
namespace {

std::unique_ptr<Sequence> with_pages(QueueNeighbours& n) {
    auto s = sequence(9, 4);
    EXPECT_TRUE(n.kv.tables().grow(s->kv.table, 4));
    return s;
}

TEST(LingeringSequences, GiveTheirPagesBackOnRelease) {
    QueueNeighbours n;
    LingeringSequences part(n.kv, n.draft_kv, nullptr);
    part.add(with_pages(n));
    EXPECT_EQ(part.all().size(), 1u);
    EXPECT_EQ(n.kv.pool().used(), 1u);
    part.release();
    EXPECT_EQ(n.kv.pool().used(), 0u);
    EXPECT_TRUE(part.all().empty());
}

TEST(LingeringSequences, GiveTheirPagesBackWhenTheEngineGoes) {
    QueueNeighbours n;
    { LingeringSequences(n.kv, n.draft_kv, nullptr).add(with_pages(n)); }
    EXPECT_EQ(n.kv.pool().used(), 0u);
}

TEST(LingeringSequences, AreNoneWithoutADraftModel) {
    QueueNeighbours n;
    const LingeringSequences part(n.kv, n.draft_kv, nullptr);
    EXPECT_FALSE(part.wants(n.run(12, 12)));
}

}  // namespace
}  // namespace patchbay::engine::testing::lingering_sequences_test
