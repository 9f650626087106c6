// One attention bound for specs of layers that differ, and what is left of it afterwards.
#include "runner/attention_binding.hpp"

#include <gmock/gmock.h>

#include "played_runner.hpp"

namespace patchbay::runner::attention_binding_test {
namespace {

using testing::PlayedDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FakeAttention { // by heads: what a plan takes, and what a graph can hold
    struct Bound {
        Bound(FakeAttention& a, uint32_t h) : of(a), heads(h) { of.bound += 1; }
        ~Bound() { of.bound -= 1; }
        FakeAttention& of;
        uint32_t heads;
    };
    uint32_t bound = 0, refused_heads = 0;
    pb_attention_graphs smallest = PB_GRAPHS_ANY; // of 8 heads

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        pb_attention_layout out = sized<pb_attention_layout>();
        out.page_bytes = 64;
        out.plan_bytes = spec.heads == 4 ? 128 : 0;
        out.graphs = PB_GRAPHS_ANY;
        if (spec.heads == 8) out.graphs = smallest;
        return out;
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) {
        if (spec.heads == refused_heads) throw Error(PB_UNSUPPORTED, "not so many heads");
        return std::make_unique<Bound>(*this, spec.heads);
    }
    void plan(Bound&, const pb_attention_batch&, void*) {}
    void append_kv(Bound&, const pb_attention_batch&, const pb_kv_view&, const pb_tensor&, const pb_tensor&) {}
    void run(Bound&, const pb_attention_batch&, const pb_kv_view&, const pb_tensor&, const pb_tensor&) {}
};
constexpr pb_component kFakeAttention = attention<FakeAttention>({"fake", "1.0.0", "plays"});

GroupAttention heads(uint32_t count, uint32_t group) {
    pb_attention_spec spec = sized<pb_attention_spec>();
    spec.heads = count;
    return {spec, group};
}

struct Bench {
    FakeAttention& fake() { return testing::played<FakeAttention>(*view.component); }
    std::vector<uint32_t> heads_bound() const {
        std::vector<uint32_t> out;
        for (const BoundAttention& b : part->all()) out.push_back(static_cast<FakeAttention::Bound*>(b.self)->heads);
        return out;
    }

    host::Attention view = testing::view_of<host::Attention, pb_attention>(kFakeAttention);
    PlayedDevice device;
    std::unique_ptr<AttentionBinding> part =
        std::make_unique<AttentionBinding>(device.opened.plugin, *view.component, "A x2+B");
};

TEST(AttentionBinding, HasOneOfEachInTheirOrderWithRoomForItsPlan) {
    Bench b;
    EXPECT_THAT(b.part->all(), IsEmpty());
    EXPECT_EQ(&b.part->attention(), b.view.component.get());
    EXPECT_EQ(b.part->layout_tag(), "A x2+B");
    ASSERT_TRUE(b.part->bind(std::vector{heads(8, 2), heads(4, 0), heads(4, 1)}));
    EXPECT_THAT(b.heads_bound(), ElementsAre(8, 4, 4));
    const std::span<const BoundAttention> all = b.part->all();
    EXPECT_EQ(all[0].group, 2u);
    EXPECT_EQ(all[1].group, 0u);
    EXPECT_EQ(all[2].group, 1u);
    EXPECT_EQ(all[0].plan_buffer, nullptr) << "its plan takes no memory";
    EXPECT_NE(all[1].plan_buffer, nullptr);
    EXPECT_NE(all[1].plan_buffer, all[2].plan_buffer);
    EXPECT_EQ(b.device.fake.memories, 2u);
    b.part.reset();
    EXPECT_EQ(b.fake().bound, 0u);
    EXPECT_EQ(b.device.fake.memories, 0u);
}

TEST(AttentionBinding, CapturesWhatAllOfThemCan) {
    Bench b;
    b.fake().smallest = PB_GRAPHS_DECODE;
    ASSERT_TRUE(b.part->bind(std::vector{heads(4, 0)}));
    EXPECT_EQ(b.part->graphs(), PB_GRAPHS_ANY);
    ASSERT_TRUE(b.part->bind(std::vector{heads(8, 1), heads(4, 2)}));
    EXPECT_EQ(b.part->graphs(), PB_GRAPHS_DECODE);
}

TEST(AttentionBinding, WhatWasBoundBeforeAFailureStaysUntilItEnds) {
    Bench b;
    b.fake().refused_heads = 6;
    const auto done = b.part->bind(std::vector{heads(4, 0), heads(6, 1), heads(8, 2)});
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error(), HasSubstr("not so many heads"));
    EXPECT_EQ(done.code(), StatusCode::kUnsupported);
    EXPECT_EQ(b.fake().bound, 1u);
    b.part.reset();
    EXPECT_EQ(b.fake().bound, 0u);
    EXPECT_EQ(b.device.fake.memories, 0u);
}

TEST(AttentionBinding, IsUnboundWhereThereIsNoMemoryForItsPlan) {
    Bench b;
    b.device.fake.is_full = true;
    EXPECT_TRUE(b.part->bind(std::vector{heads(8, 0)}));
    EXPECT_THAT(b.part->bind(std::vector{heads(4, 1)}).error(), HasSubstr("there is no memory"));
    EXPECT_EQ(b.fake().bound, 2u);
    b.part.reset();
    EXPECT_EQ(b.fake().bound, 0u);
    EXPECT_EQ(b.device.fake.memories, 0u);
}

}  // namespace
}  // namespace patchbay::runner::attention_binding_test
