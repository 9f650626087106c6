// Copies of pages as a step of their own.
#include "engine/loop/page_copies.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::page_copies_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Bench : RowNeighbours {
    BatchBuilder batches{{form, kv, rows, constraints, prompt_logprobs, pooling, branches, draft_kv, kVocab, context}};
    PageCopies part{batches, executor, kv};
};

TEST(PageCopies, AreMadeInTheirOrderAndOnce) {
    Bench b;
    const kv::PageCopy first{1, 0}, second{2, 1, kv::Way::kToHost};
    b.kv.copies().add(first);
    b.kv.copies().add(second);
    ASSERT_TRUE(b.part.flush());
    EXPECT_THAT(b.executor.copied, ElementsAre(first, second));
    EXPECT_THAT(b.executor.tokens_of_steps, IsEmpty()) << "nothing is computed with them";
    ASSERT_TRUE(b.part.flush());
    EXPECT_EQ(b.executor.submitted, 1u) << "where there is nothing to copy nothing is submitted";
}

TEST(PageCopies, ThatFailAreStillToBeMade) {
    for (const bool in_wait : {false, true}) {
        Bench b;
        b.kv.copies().add({1, 0});
        (in_wait ? b.executor.wait_fails : b.executor.fails) = "the device is gone";
        const auto done = b.part.flush();
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error(), "the device is gone");
        EXPECT_THAT(b.kv.copies().copies(), SizeIs(1));
    }
}

}  // namespace
}  // namespace patchbay::engine::testing::page_copies_test
