// Sequences of one request: who is held until when, and whose pages can be shared.
#include "engine/groups/siblings.hpp"

#include <gtest/gtest.h>

#include "kv/kv_cache.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::siblings_test {
namespace {

struct Request3 { // of three outputs, over a cache of 16 blocks of 4 tokens
    explicit Request3(kv::PrefixCaching caching) : kv(16, 4, caching, "model"), siblings(kv) {
        SamplingParams p;
        p.n = 3;
        for (RequestId id = 1; id <= 3; ++id) {
            owned.push_back(sequence(id, 9, p));
            owned.back()->group = 1;
            owned.back()->tokens = owned.front()->tokens;
            owned.back()->place = id == 1 ? Place::kRunning : Place::kHeld;
        }
        siblings.add({owned[0].get(), owned[1].get(), owned[2].get()});
        siblings.hold(*owned[0]);
    }
    ~Request3() {
        for (auto& s : owned) kv.tables().release(s->kv.table);
    }
    kv::KvCache kv;
    Siblings siblings;
    std::vector<std::unique_ptr<Sequence>> owned;
};

TEST(Siblings, AreReleasedInTheirOrder) {
    Request3 r(kv::PrefixCaching::kOn);
    EXPECT_TRUE(r.siblings.holds(*r.owned[0]));
    const auto released = r.siblings.release(*r.owned[0]);
    ASSERT_EQ(released.size(), 2u);
    EXPECT_EQ(released[0]->id, 2u);
    EXPECT_EQ(released[1]->id, 3u);
    EXPECT_FALSE(r.siblings.holds(*r.owned[0]));
}

// Without a cache nothing of the prompt is left: the next one computes it, and holds the rest.
TEST(Siblings, TheNextOneHoldsTheOthersWhereTheFirstLeftNothing) {
    Request3 r(kv::PrefixCaching::kOff);
    r.owned[0]->ended = true;
    const auto released = r.siblings.release(*r.owned[0]);
    ASSERT_EQ(released.size(), 1u);
    EXPECT_EQ(released[0]->id, 2u);
    EXPECT_TRUE(r.siblings.holds(*r.owned[1]));
    EXPECT_FALSE(r.siblings.leave(*r.owned[0]));
    EXPECT_FALSE(r.siblings.leave(*r.owned[1]));
    EXPECT_TRUE(r.siblings.leave(*r.owned[2])) << "the last one";
    EXPECT_TRUE(r.siblings.of(1).empty());
}

TEST(Siblings, ShareWithOneThatHasComputedThePrompt) {
    Request3 r(kv::PrefixCaching::kOff);
    Sequence& first = *r.owned[0];
    ASSERT_TRUE(r.kv.tables().grow(first.kv.table, 9));
    first.computed = 7;
    EXPECT_EQ(r.siblings.source_of(*r.owned[1]), nullptr) << "the prompt's last token but one is missing";
    first.computed = 9;
    EXPECT_EQ(r.siblings.source_of(*r.owned[1]), &first);
    first.place = Place::kWaiting;
    EXPECT_EQ(r.siblings.source_of(*r.owned[1]), nullptr) << "it was preempted";
}

}  // namespace
}  // namespace patchbay::engine::testing::siblings_test
