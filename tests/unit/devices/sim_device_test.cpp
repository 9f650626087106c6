// The device `sim`: what each kind of op is charged, counted by hand, and memory that is counted and not taken.
#include <gtest/gtest.h>

#include <functional>

#include "host/component.hpp"
#include "host/library.hpp"
#include "loaded_plugin.hpp"
#include "patchbay/abi/device.h"
#include "patchbay/sdk/attention_cost.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::sim_device_test {
namespace {

// Charges in ns; by default 1 FLOP and 1 byte a nanosecond, so that an op takes the more of its FLOP and its bytes.
class Sim {
  public:
    explicit Sim(std::initializer_list<host::Settings::value_type> given = {}) {
        host::Settings settings(given);
        settings.insert({{"matmul_bf16", "1e9"}, {"matmul_f32", "5e8"}, {"memory_read", "1e9"},
                         {"memory_bytes", "2000000"}});
        auto library = host::Library::open(built_plugin("device-sim"), "");
        if (!library) throw std::runtime_error(library.error());
        auto made = host::Component::create(*library, (*library)->components()[0].type(), settings, {});
        if (!made) throw std::runtime_error(made.error());
        component_ = *std::move(made);
    }
    ~Sim() {
        for (pb_weight* w : weights_) table().release(self(), w);
    }

    const pb_device& table() const { return *static_cast<const pb_device*>(component_->type().vtable); }
    const pb_device_graphs& graphs() const { return *component_->extension<pb_device_graphs>(); }
    const pb_device_simulation& simulation() const { return *component_->extension<pb_device_simulation>(); }
    void* self() const { return component_->self(); }
    pb_status prepare(pb_weight_source source) {
        pb_weight* w = nullptr;
        const pb_status status = table().prepare(self(), &source, &w);
        if (status == PB_OK) weights_.push_back(w);
        return status;
    }
    const pb_weight* weight(int64_t rows, int64_t cols, pb_dtype dtype = PB_BF16, const pb_quant* quant = nullptr) {
        if (prepare({sizeof(pb_weight_source), PB_WEIGHT_LINEAR, dtype, 0, rows, cols, nullptr, nullptr,
                     1u << PB_WEIGHT_EMBEDDING, quant}) != PB_OK)
            throw std::runtime_error("a weight is refused");
        return weights_.back();
    }
    uint64_t charged(const std::function<void(const pb_ops&)>& f) {
        EXPECT_EQ(table().begin_step(self()), PB_OK);
        f(*table().ops(self()));
        EXPECT_EQ(table().end_step(self()), PB_OK);
        return simulation().charged_ns(self());
    }
    uint64_t free_bytes() const {
        pb_device_info info = patchbay::sized<pb_device_info>();
        table().info(self(), &info);
        return info.memory_free;
    }

  private:
    std::unique_ptr<host::Component> component_;
    std::vector<pb_weight*> weights_;
};

pb_tensor shape(std::initializer_list<int64_t> sizes, pb_dtype dtype = PB_BF16) {
    return tensor(nullptr, dtype, sizes);
}

uint64_t linear(Sim& sim, const pb_weight* w, int64_t tokens, int64_t rows, int64_t cols) {
    const pb_tensor x = shape({tokens, cols}), out = shape({tokens, rows});
    return sim.charged([&](const pb_ops& o) { o.linear(o.ctx, &out, &x, w); });
}

TEST(SimDevice, ChargesALinearTheLongerOfMultiplicationsAndMemory) {
    Sim sim;
    const pb_weight* w = sim.weight(30, 40);
    // 2 · 30 · 40 bytes of weights, 2 · 40 of x and 2 · 30 of out, more than its 2,400 FLOP.
    EXPECT_EQ(linear(sim, w, 1, 30, 40), 2'400u + 80 + 60);
    // 100 tokens: 2 · 100 · 30 · 40 FLOP, more than 2,400 + 100 · 140 bytes.
    EXPECT_EQ(linear(sim, w, 100, 30, 40), 240'000u);
    EXPECT_EQ(linear(sim, w, 0, 30, 40), 0u) << "an op without rows is not launched";
}

TEST(SimDevice, MultipliesAtThePeakOfTheWeights) {
    Sim widened, own{{"matmul_i8", "4e9"}, {"matmul_fp8", "3e9"}};
    const pb_quant quant{sizeof quant, 32, nullptr, nullptr, nullptr};
    EXPECT_EQ(linear(widened, widened.weight(30, 40, PB_F32), 100, 30, 40), 480'000u); // half the peak of bf16
    EXPECT_EQ(linear(widened, widened.weight(30, 40, PB_I4, &quant), 100, 30, 40), 240'000u); // as bf16
    EXPECT_EQ(linear(own, own.weight(30, 40, PB_I8, &quant), 100, 30, 40), 60'000u);
    EXPECT_EQ(linear(own, own.weight(30, 40, PB_I4, &quant), 100, 30, 40), 240'000u); // its activations are bf16
    EXPECT_EQ(linear(own, own.weight(30, 40, PB_FP8, &quant), 100, 30, 40), 80'000u);
}

TEST(SimDevice, CountsQuantisedWeightsAsHardwareHoldsThem) {
    Sim sim;
    const pb_quant quant{sizeof quant, 32, nullptr, nullptr, nullptr};
    // A row of 40 columns has two groups, each with a scale of 2 bytes.
    EXPECT_EQ(sim.table().weight_bytes(sim.self(), sim.weight(30, 40, PB_I4, &quant)), 30u * (20 + 4));
    EXPECT_EQ(sim.table().weight_bytes(sim.self(), sim.weight(30, 40, PB_I8, &quant)), 30u * (40 + 4));
    EXPECT_EQ(sim.table().weight_bytes(sim.self(), sim.weight(30, 40, PB_F32)), 30u * 160);
}

TEST(SimDevice, ChargesTheRowsThatAnEmbeddingReads) {
    Sim sim;
    const pb_weight* table = sim.weight(1000, 40);
    const pb_tensor ids = shape({3}, PB_I32), out = shape({3, 40});
    // Of three rows 2 · 40 bytes read and as many written, and 4 of each id.
    EXPECT_EQ(sim.charged([&](const pb_ops& o) { o.embedding(o.ctx, &out, table, &ids); }), 3u * (80 + 80 + 4));
}

TEST(SimDevice, ReadsTheExpertsThatTokensCanBeExpectedToAsk) {
    Sim sim{{"matmul_bf16", "1e12"}}; // so that bytes count
    const pb_weight* experts[] = {sim.weight(30, 40), sim.weight(30, 40), sim.weight(30, 40), sim.weight(30, 40)};
    const auto charged = [&](int64_t tokens) {
        const pb_tensor x = shape({tokens, 1, 40}), out = shape({tokens, 2, 30}), ids = shape({tokens, 2}, PB_I32);
        return sim.charged([&](const pb_ops& o) { o.expert_linear(o.ctx, &out, &x, experts, 4, &ids); });
    };
    // A token asks two of four; of two tokens, 4 · (1 − (1/2)²) = 3. A token has 80 bytes of x, 120 of out, 8 of ids.
    EXPECT_EQ(charged(1), 2u * 2'400 + 208);
    EXPECT_EQ(charged(2), 3u * 2'400 + 2 * 208);
}

TEST(SimDevice, AddsALaunchToEachOp) {
    Sim sim{{"launch_ns", "500"}};
    const pb_tensor x = shape({2, 10});
    const auto add = [&](const pb_ops& o) { o.add(o.ctx, &x, &x); };
    EXPECT_EQ(sim.charged(add), 500u + 3 * 40);
    EXPECT_EQ(sim.charged([&](const pb_ops& o) { add(o), add(o); }), 2u * (500 + 3 * 40));
}

// 40 bytes of each operand read, and as many written: 120 ns.
TEST(SimDevice, ChargesAGraphOnceItIsReplayedAndThenWithoutLaunches) {
    Sim sim{{"launch_ns", "500"}, {"graph_replay_ns", "70"}, {"graph_node_ns", "8"}, {"graph_node_bytes", "100"}};
    const pb_tensor x = shape({2, 10});
    pb_graph* graph = nullptr;
    const uint64_t before = sim.free_bytes();
    const uint64_t recording = sim.charged([&](const pb_ops& o) {
        ASSERT_EQ(sim.graphs().graph_begin(sim.self()), PB_OK);
        o.add(o.ctx, &x, &x), o.add(o.ctx, &x, &x);
        ASSERT_EQ(sim.graphs().graph_end(sim.self(), &graph), PB_OK);
    });
    EXPECT_EQ(recording, 2u * 500) << "the host's part of two launches, and nothing is computed";
    ASSERT_TRUE(graph);
    EXPECT_EQ(sim.graphs().graph_bytes(sim.self(), graph), 200u);
    EXPECT_EQ(sim.free_bytes(), before - 200);
    const auto launch = [&](const pb_ops&) { ASSERT_EQ(sim.graphs().graph_launch(sim.self(), graph), PB_OK); };
    EXPECT_EQ(sim.charged(launch), 70u + 2 * (120 + 8));
    const pb_cost attention{sizeof(pb_cost), 2, 0, 30, 10, PB_BF16, 1};
    EXPECT_EQ(sim.charged([&](const pb_ops& o) { launch(o), sim.simulation().charge(sim.self(), &attention); }),
              70u + 2 * (120 + 8) + 40 + 2 * 8)
        << "attention of a replayed graph is charged beside it, its launches as nodes";
    sim.graphs().graph_free(sim.self(), graph);
    EXPECT_EQ(sim.free_bytes(), before);
}

TEST(SimDevice, RefusesGraphsWithinGraphsAndThoseThatItsMemoryDoesNotHold) {
    Sim sim{{"graph_node_bytes", "3000000"}};
    const pb_tensor x = shape({2, 10});
    pb_graph* graph = nullptr;
    ASSERT_EQ(sim.table().begin_step(sim.self()), PB_OK);
    EXPECT_NE(sim.graphs().graph_end(sim.self(), &graph), PB_OK);
    ASSERT_EQ(sim.graphs().graph_begin(sim.self()), PB_OK);
    EXPECT_NE(sim.graphs().graph_begin(sim.self()), PB_OK);
    const pb_ops& o = *sim.table().ops(sim.self());
    o.add(o.ctx, &x, &x);
    EXPECT_NE(sim.graphs().graph_end(sim.self(), &graph), PB_OK);
    EXPECT_FALSE(graph);
    EXPECT_EQ(sim.table().end_step(sim.self()), PB_OK);
    EXPECT_EQ(sim.charged([&](const pb_ops& ops) { ops.add(ops.ctx, &x, &x); }), 120u) << "nothing is recorded now";
}

TEST(SimDevice, ReachesTheShareOfPeaksThatItIsGiven) {
    Sim half{{"compute_efficiency", "0.5"}, {"memory_efficiency", "0.25"}};
    const pb_weight* w = half.weight(30, 40);
    EXPECT_EQ(linear(half, w, 100, 30, 40), 480'000u);
    EXPECT_EQ(linear(half, w, 1, 30, 40), 4u * 2'540);
}

TEST(SimDevice, RefusesShapesThatDoNotFit) {
    Sim sim;
    const pb_weight* w = sim.weight(30, 40);
    const pb_tensor x = shape({2, 39}), out = shape({2, 30});
    ASSERT_EQ(sim.table().begin_step(sim.self()), PB_OK);
    const pb_ops& o = *sim.table().ops(sim.self());
    o.linear(o.ctx, &out, &x, w);
    EXPECT_EQ(sim.table().end_step(sim.self()), PB_INVALID);
    EXPECT_EQ(linear(sim, w, 1, 30, 40), 2'540u) << "the next step is sound again";
}

TEST(SimDevice, RefusesStridesAsDevicesThatComputeDo) {
    Sim sim;
    pb_tensor a = shape({4, 8}), b = a;
    b.strides[1] = 2;
    const pb_ops& o = *sim.table().ops(sim.self());
    ASSERT_EQ(sim.table().begin_step(sim.self()), PB_OK);
    o.add(o.ctx, &a, &b);
    o.add(o.ctx, &a, &a); // after the fault it does nothing
    EXPECT_EQ(sim.table().end_step(sim.self()), PB_INVALID);
    EXPECT_EQ(sim.simulation().charged_ns(sim.self()), 0u);
    pb_tensor ids = shape({2, 3}, PB_I32);
    ids.strides[0] = 4; // ids have no gaps between rows
    const pb_tensor weights = shape({2, 3}, PB_F32), logits = shape({2, 5});
    ASSERT_EQ(sim.table().begin_step(sim.self()), PB_OK);
    o.top_k(o.ctx, &ids, &weights, &logits, 1);
    EXPECT_EQ(sim.table().end_step(sim.self()), PB_INVALID);
}

TEST(SimDevice, CountsMemoryThatItDoesNotTake) {
    Sim sim; // of 2,000,000 bytes
    void* block = nullptr;
    ASSERT_EQ(sim.table().alloc(sim.self(), 1'500'000, &block), PB_OK);
    EXPECT_EQ(sim.free_bytes(), 500'000u);
    void* second = nullptr;
    EXPECT_NE(sim.table().alloc(sim.self(), 500'001, &second), PB_OK);
    EXPECT_NE(sim.prepare({sizeof(pb_weight_source), PB_WEIGHT_LINEAR, PB_BF16, 0, 1000, 251, nullptr, nullptr, 0,
                           nullptr}),
              PB_OK);
    sim.table().free(sim.self(), block);
    sim.weight(1000, 500);
    EXPECT_EQ(sim.free_bytes(), 1'000'000u);
}

TEST(AttentionCost, CountsTheKeysThatQueriesSee) {
    const pb_attention_spec full{sizeof full, 8, 2, 16, 16, 0, PB_BF16, PB_BF16, 1, 0, "sim", 0, 0, 0, 1};
    pb_attention_spec window = full;
    window.sliding_window = 4;
    // Sequence 0: 3 queries after 5 tokens; 1: a decode step of 10 tokens. The first token is not to be written.
    const int32_t starts[] = {0, 3, 4}, lens[] = {8, 10}, blocks[] = {0, 1}, block_starts[] = {0, 1, 2},
                  positions[] = {5, 6, 7, 9};
    const int64_t slots[] = {-1, 6, 7, 25};
    const pb_attention_batch batch{sizeof batch, 2, 4, 0, starts, lens, block_starts, blocks, slots, positions, 3, 10};
    const pb_cost all = attention_cost(full, batch), near = attention_cost(window, batch);
    EXPECT_EQ(all.flop, 4u * 8 * 16 * (6 + 7 + 8 + 10));
    EXPECT_EQ(near.flop, 4u * 8 * 16 * 16); // four keys each
    // A token has 2 · 2 · 16 numbers of KV, 8 · 16 of q and out; 2 bytes each.
    EXPECT_EQ(all.read_bytes, 128u * (8 + 10) + 4 * (256 + 128));
    EXPECT_EQ(near.read_bytes, 128u * (6 + 4) + 4 * (256 + 128)); // the first query sees tokens 2 to 5
    EXPECT_EQ(all.write_bytes, 128u * 3 + 4 * 256);
    EXPECT_EQ(all.flop_dtype, PB_BF16);
}

TEST(AttentionCost, OfAPromptWithinItsWindowIsThatWithoutOne) {
    pb_attention_spec spec{sizeof spec, 1, 1, 1, 16, 4, PB_F32, PB_F32, 1, 0, "sim", 0, 0, 0, 1};
    const int32_t starts[] = {0, 6}, lens[] = {6};
    const int64_t slots[6] = {};
    const pb_attention_batch batch{sizeof batch, 1, 6, 0, starts, lens, nullptr, nullptr, slots, nullptr, 6, 6};
    EXPECT_EQ(attention_cost(spec, batch).flop, 4u * (1 + 2 + 3 + 4 + 4 + 4));
    spec.sliding_window = 6;
    const uint64_t whole = attention_cost(spec, batch).flop;
    spec.sliding_window = 0;
    EXPECT_EQ(attention_cost(spec, batch).flop, whole);
}

}  // namespace
}  // namespace patchbay::sim_device_test
