// What a model calls back in a pass: its tensors, attention of its layers, its states; and what it may not.
#include "runner/layer_calls.hpp"

#include <gmock/gmock.h>

#include "patchbay/sdk/tensor.hpp"
#include "played_context.hpp"
#include "unit/weights/weight_specs.hpp"

namespace patchbay::runner::layer_calls_test {
namespace {

using testing::FakeModel;
using testing::PlayedContext;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct FakeAttention { // records its calls: each takes the time of its kind
    struct Bound {};
    struct Call {
        std::string name;
        uint32_t layer;
        pb_kv_view kv;
        const void *first, *second; // k and v; out and q
    };
    static constexpr uint32_t kCapabilities = PB_ATTENTION_SINKS;
    static constexpr uint64_t kPlanNs = 7, kAppendNs = 20, kRunNs = 300;
    std::vector<Call> calls;
    std::vector<std::vector<int64_t>> slots; // of what is said to cost something
    std::vector<const void*> plan_buffers;
    VirtualClock* clock = nullptr;
    std::string fault; // of plans and costs

    pb_attention_layout describe(const pb_attention_spec&) const {
        pb_attention_layout out = sized<pb_attention_layout>();
        out.page_bytes = 64;
        out.plan_bytes = 16;
        out.graphs = PB_GRAPHS_ANY;
        out.layout_tag[0] = 'A';
        return out;
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec&) { return std::make_unique<Bound>(); }
    void plan(Bound&, const pb_attention_batch&, void* buffer) {
        if (!fault.empty()) throw Error(PB_FAILED, fault);
        plan_buffers.push_back(buffer);
        clock->advance_ns(kPlanNs);
    }
    void append_kv(Bound&, const pb_attention_batch&, const pb_kv_view& kv, const pb_tensor& k, const pb_tensor& v) {
        calls.push_back({"append", kv.layer, kv, k.data, v.data});
        clock->advance_ns(kAppendNs);
    }
    void run(Bound&, const pb_attention_batch&, const pb_kv_view& kv, const pb_tensor& out, const pb_tensor& q) {
        calls.push_back({"run", kv.layer, kv, out.data, q.data});
        clock->advance_ns(kRunNs);
    }
    pb_cost cost(const Bound&, const pb_attention_batch& b) {
        if (!fault.empty()) throw Error(PB_FAILED, fault);
        slots.emplace_back(b.slot_mapping, b.slot_mapping + b.token_count);
        pb_cost out = sized<pb_cost>();
        out.flop = b.token_count;
        return out;
    }
};
constexpr pb_component kFakeAttention = attention<FakeAttention>({"fake", "1.0.0", "plays"});

enum Layer : uint32_t { kOwn, kShares, kState };

std::vector<pb_kv_spec> layers() {
    std::vector<pb_kv_spec> out(3, FakeModel::layer());
    out[kShares].kv_source_layer = 1 + kOwn;
    out[kState] = sized<pb_kv_spec>();
    out[kState].kind = PB_KV_RECURRENT;
    out[kState].state_bytes = 64;
    return out;
}

struct Bench {
    explicit Bench(bool computes = true, std::vector<pb_kv_spec> of = layers())
        : c(computes, true, std::move(of), kFakeAttention) {
        played().clock = &c.clock;
        batch = c.batch({3, 1});
        if (computes && !inputs.make_room_for(batch)) throw std::runtime_error("there is no memory");
        if (const auto placed = inputs.place(batch, {}); !placed) throw std::runtime_error(placed.error());
        part.offer(forward);
    }
    FakeAttention& played() { return testing::played<FakeAttention>(c.attention.component()); }
    pb_tensor temp(std::vector<int64_t> shape) {
        return forward.temp(forward.ctx, PB_F32, static_cast<int32_t>(shape.size()), shape.data());
    }
    void attend(uint32_t layer, bool with_kv = true) {
        forward.attend(forward.ctx, layer, &out, &q, with_kv ? &k : nullptr, with_kv ? &v : nullptr);
    }
    pb_state state(uint32_t layer) {
        pb_state s = sized<pb_state>();
        forward.state(forward.ctx, layer, &s);
        return s;
    }
    std::string fault() { return part.faults().layer; }
    std::vector<std::string> calls() { // "run 1"
        std::vector<std::string> names;
        for (const auto& call : played().calls) names.push_back(call.name + " " + std::to_string(call.layer));
        return names;
    }

    PlayedContext c;
    Batch batch;
    PassInputs inputs{c.context()};
    CallTimes times;
    LayerCalls part{c.context(), inputs, times};
    pb_forward forward{};
    float numbers[4]{};
    pb_tensor out = tensor(&numbers[0], PB_F32, {1}), q = tensor(&numbers[1], PB_F32, {1}),
              k = tensor(&numbers[2], PB_F32, {1}), v = tensor(&numbers[3], PB_F32, {1});
};

TEST(LayerCalls, TemporaryTensorsAreContiguousAndLieWhereTheyLayBefore) {
    Bench b;
    const pb_tensor t = b.temp({2, 3, 5});
    EXPECT_EQ(t.rank, 3);
    EXPECT_EQ(t.dtype, PB_F32);
    EXPECT_THAT(std::vector(t.shape, t.shape + 3), ElementsAre(2, 3, 5));
    EXPECT_THAT(std::vector(t.strides, t.strides + 3), ElementsAre(15, 5, 1));
    EXPECT_EQ(t.device, b.c.device.opened.of_tensors());
    const pb_tensor next = b.temp({4});
    EXPECT_GE(static_cast<char*>(next.data) - static_cast<char*>(t.data), 2 * 3 * 5 * 4) << "after it";
    b.part.offer(b.forward);
    EXPECT_EQ(b.temp({2, 3, 5}).data, t.data);
    EXPECT_EQ(b.temp({4}).data, next.data);
}

TEST(LayerCalls, WithoutMemoryNothingIsDoneForTheModelAnyMore) {
    Bench b;
    b.c.device.fake.is_full = true;
    EXPECT_EQ(b.temp({2}).data, nullptr);
    EXPECT_TRUE(b.part.faults().out_of_memory);
    b.attend(kOwn);
    EXPECT_THAT(b.calls(), IsEmpty());
    EXPECT_EQ(b.fault(), "") << "that is not its fault";
}

TEST(LayerCalls, ALayerAppendsItsKvAndAttends) {
    Bench b;
    b.attend(kOwn);
    ASSERT_THAT(b.calls(), ElementsAre("append 0", "run 0"));
    const auto& [append, run] = std::tie(b.played().calls[0], b.played().calls[1]);
    EXPECT_EQ(append.first, b.k.data);
    EXPECT_EQ(append.second, b.v.data);
    EXPECT_EQ(run.first, b.out.data);
    EXPECT_EQ(run.second, b.q.data);
    EXPECT_EQ(run.kv.data, b.c.kv.pages().page(0) + b.c.kv.grouping().layers[kOwn].offset);
    EXPECT_EQ(run.kv.page_stride, b.c.kv.page_bytes());
    EXPECT_EQ(run.kv.sinks, nullptr);
    EXPECT_EQ(b.times.attention_append, FakeAttention::kAppendNs);
    EXPECT_EQ(b.times.attention_run, FakeAttention::kRunNs);
    EXPECT_EQ(b.times.attention_plan, 0u);
    EXPECT_EQ(b.fault(), "");
}

TEST(LayerCalls, ALayerThatSharesKvAppendsNone) {
    Bench b;
    b.attend(kShares, false);
    EXPECT_THAT(b.calls(), ElementsAre("run 1"));
    EXPECT_EQ(b.played().calls[0].kv.data, b.c.kv.pages().page(0) + b.c.kv.grouping().layers[kOwn].offset);
    EXPECT_EQ(b.times.attention_append, 0u);
    b.attend(kShares);
    EXPECT_EQ(b.fault(), "gives layer 1, which shares another's KV, its own");
    EXPECT_THAT(b.calls(), SizeIs(1));
}

TEST(LayerCalls, AttentionIsGivenTheSinksOfItsLayer) {
    std::vector<pb_kv_spec> two(2, FakeModel::layer());
    two[1].sinks = 1;
    Bench b(true, two);
    b.c.computed().weights = {weights::spec(1, {weights::part("sinks", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR)};
    b.c.weights.sinks = *AttentionSinks::of(b.c.model.component(), 2);
    const float value = 5;
    ASSERT_TRUE(b.c.weights.sinks.place(b.c.device.opened.plugin, 0, std::as_bytes(std::span(&value, 1))));
    for (const uint32_t layer : {0, 1}) b.attend(layer);
    EXPECT_EQ(b.played().calls[1].kv.sinks, nullptr);
    ASSERT_NE(b.played().calls[3].kv.sinks, nullptr);
    EXPECT_EQ(*b.played().calls[3].kv.sinks, 5);
    b.c.weights.sinks.release(b.c.device.opened.plugin);
}

TEST(LayerCalls, WhatNoLayerDoesIsNotedAndNotDone) {
    const auto fault_of = [](const std::function<void(Bench&)>& call) {
        Bench b;
        call(b);
        EXPECT_THAT(b.calls(), IsEmpty());
        return b.fault();
    };
    EXPECT_EQ(fault_of([](Bench& b) { b.attend(3); }), "attends in layer 3 of 3");
    EXPECT_EQ(fault_of([](Bench& b) { b.state(4); }), "requests a state in layer 4 of 3");
    EXPECT_EQ(fault_of([](Bench& b) { b.attend(kState); }), "attends in layer 2, which keeps a state");
    EXPECT_EQ(fault_of([](Bench& b) { b.state(kOwn); }), "requests a state in layer 0, which attends");
    EXPECT_EQ(fault_of([](Bench& b) { b.attend(kOwn, false); }), "attends in layer 0 without k and v");
    EXPECT_EQ(fault_of([](Bench& b) {
                  b.attend(3);
                  b.attend(kOwn); // goes on, and nothing is done for it
                  b.state(kOwn);
              }),
              "attends in layer 3 of 3") << "the first is the cause";
}

TEST(LayerCalls, AStateLiesInThePagesOfItsLayersGroup) {
    Bench b;
    const pb_state s = b.state(kState);
    EXPECT_EQ(s.data, b.c.kv.pages().page(0) + b.c.kv.grouping().layers[kState].offset);
    EXPECT_EQ(s.page_stride, b.c.kv.page_bytes());
    EXPECT_EQ(s.page_count, PlayedContext::kPages);
    const pb_state& placed = b.inputs.states(b.c.kv.grouping().layers[kState].group);
    EXPECT_EQ(s.pages.data, placed.pages.data);
    EXPECT_EQ(s.pages.shape[0], 2) << "a page for each sequence";
    EXPECT_EQ(s.query_starts.data, placed.query_starts.data);
    EXPECT_EQ(b.fault(), "");
}

TEST(LayerCalls, AttentionIsPlannedForEachSpec) {
    std::vector<pb_kv_spec> two(2, FakeModel::layer());
    two[1].scale = 3;
    Bench b(true, two);
    ASSERT_TRUE(b.part.plan_attention());
    const std::span<const BoundAttention> bound = b.c.kv.layers().binding().all();
    EXPECT_THAT(b.played().plan_buffers, ElementsAre(bound[0].plan_buffer, bound[1].plan_buffer));
    EXPECT_EQ(b.times.attention_plan, 2 * FakeAttention::kPlanNs);
    b.played().fault = "so many sequences";
    EXPECT_THAT(b.part.plan_attention().error(), HasSubstr("so many sequences"));
    EXPECT_THAT(b.part.plan_attention().error(), HasSubstr("plan"));
}

TEST(LayerCalls, WhileCapturingItIsKnownWhichLayersAttended) {
    Bench b;
    b.attend(kOwn);
    b.part.begin_capture();
    b.attend(kShares, false);
    b.attend(kOwn);
    b.attend(kShares, false);
    EXPECT_THAT(b.part.end_capture(), ElementsAre(kShares, kOwn, kShares));
    b.attend(kOwn);
    b.part.begin_capture();
    EXPECT_THAT(b.part.end_capture(), IsEmpty()) << "of this graph";
}

TEST(LayerCalls, WhereNothingIsComputedAttentionIsChargedFor) {
    Bench b(false);
    const pb_tensor t = b.temp({2, 3});
    EXPECT_EQ(t.data, nullptr);
    EXPECT_EQ(t.shape[1], 3);
    b.attend(kOwn);
    b.attend(kShares, false);
    EXPECT_THAT(b.calls(), IsEmpty());
    ASSERT_THAT(b.c.device.fake.costs, SizeIs(2));
    for (const pb_cost& cost : b.c.device.fake.costs) {
        EXPECT_EQ(cost.flop, 4u) << "tokens";
        EXPECT_EQ(cost.in_graph, 0u);
    }
    const std::vector<std::vector<int64_t>>& slots = b.played().slots;
    EXPECT_THAT(slots[0], ::testing::Each(::testing::Ge(0))) << "all of them are appended";
    EXPECT_THAT(slots[1], ElementsAre(-1, -1, -1, -1)) << "none is";
    b.played().fault = "it does not know";
    b.attend(kOwn);
    EXPECT_THAT(b.part.faults().cost, HasSubstr("it does not know"));
    EXPECT_THAT(b.c.device.fake.costs, SizeIs(2));
}

TEST(LayerCalls, AGraphIsChargedForWhenItIsReplayed) {
    Bench b(false);
    b.part.begin_capture();
    b.attend(kOwn);
    b.attend(kShares, false);
    const std::vector<uint32_t> attended = b.part.end_capture();
    EXPECT_THAT(b.c.device.fake.costs, IsEmpty()) << "it is recorded, not run";
    b.part.charge(attended);
    ASSERT_THAT(b.c.device.fake.costs, SizeIs(2));
    for (const pb_cost& cost : b.c.device.fake.costs) EXPECT_EQ(cost.in_graph, 1u);
    Bench computes;
    computes.part.charge(attended);
    EXPECT_THAT(computes.c.device.fake.costs, IsEmpty());
}

}  // namespace
}  // namespace patchbay::runner::layer_calls_test
