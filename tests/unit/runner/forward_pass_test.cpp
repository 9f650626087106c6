// What a model's forward is given, what its time and its fault are, and where hidden states go for a head.
#include "runner/forward_pass.hpp"

#include <gmock/gmock.h>

#include "played_context.hpp"

namespace patchbay::runner::forward_pass_test {
namespace {

using testing::FakeModel;
using testing::PlayedContext;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FakeOps { // those that a pass calls itself
    std::vector<std::pair<pb_tensor, pb_tensor>> filled;                // ids, sampled
    std::vector<std::tuple<pb_tensor, pb_tensor, pb_tensor>> gathered;  // to, from, rows
};

struct Bench {
    explicit Bench(bool computes = true, uint32_t layer_count = 1)
        : c(computes, true, std::vector<pb_kv_spec>(layer_count, FakeModel::layer())) {
        pb_ops& ops = c.device.opened.ops;
        ops.ctx = &called;
        ops.fill_placeholders = [](void* ctx, const pb_tensor* ids, const pb_tensor* sampled) {
            static_cast<FakeOps*>(ctx)->filled.emplace_back(*ids, *sampled);
        };
        ops.gather_rows = [](void* ctx, const pb_tensor* to, const pb_tensor* from, const pb_tensor* rows) {
            static_cast<FakeOps*>(ctx)->gathered.emplace_back(*to, *from, *rows);
        };
    }
    const PlacedInputs& place(const std::vector<uint32_t>& sequences) {
        batch = c.batch(sequences);
        if (c.device.opened.computes() && !inputs.make_room_for(batch)) throw std::runtime_error("there is no memory");
        const auto out = inputs.place(batch, {});
        if (!out) throw std::runtime_error(out.error());
        return placed = *out;
    }
    // Hidden states of 8 tokens of the target, and of two passes of a head with two rows each.
    std::unique_ptr<HiddenStates> hidden_states() {
        auto out = std::make_unique<HiddenStates>(c.device.opened.plugin);
        if (!out->allocate({8, 2, 2, FakeModel::kHidden, PB_F32, 1, true})) throw std::runtime_error("no memory");
        return out;
    }

    FakeOps called;
    PlayedContext c;
    Batch batch;
    PassInputs inputs{c.context()};
    PlacedInputs placed{};
    CallTimes times;
    LayerCalls calls{c.context(), inputs, times};
    ForwardPass part{c.context(), calls};
};

TEST(ForwardPass, AModelIsGivenItsInputsItsWeightsAndRoomForLogits) {
    Bench b;
    b.c.weights.by_spec = {reinterpret_cast<pb_weight*>(uintptr_t{5})};
    const PlacedInputs& placed = b.place({3, 1});
    const pb_forward f = b.part.prepare(placed, ForwardPass::Hidden::kUnwanted);
    EXPECT_EQ(f.struct_size, sizeof f);
    EXPECT_EQ(f.token_count, 4u);
    EXPECT_EQ(f.ops, &b.c.device.opened.ops);
    EXPECT_EQ(f.weights, b.c.weights.by_spec.data());
    EXPECT_EQ(f.ids.data, placed.ids.data);
    EXPECT_EQ(f.positions.data, placed.positions.data);
    EXPECT_EQ(f.logit_rows.data, placed.logit_rows.data);
    EXPECT_EQ(f.logits.dtype, PB_F32);
    EXPECT_THAT(std::vector(f.logits.shape, f.logits.shape + 2), ElementsAre(2, FakeModel::kVocab));
    EXPECT_NE(f.logits.data, nullptr);
    EXPECT_EQ(f.activation_dtype, PB_F32);
    EXPECT_EQ(f.hidden.rank, 0) << "they are not wanted";
    EXPECT_EQ(f.features.rank, 0) << "it is not a head";
    const int64_t shape[] = {1};
    EXPECT_NE(f.temp(f.ctx, PB_F32, 1, shape).data, f.logits.data);
    EXPECT_EQ(b.part.prepare(placed, ForwardPass::Hidden::kUnwanted).logits.data, f.logits.data) << "again";
}

TEST(ForwardPass, HiddenStatesGoWhereTheyAreKeptOrToTheWorkspace) {
    Bench b;
    const PlacedInputs& placed = b.place({3, 1});
    const pb_forward wanted = b.part.prepare(placed, ForwardPass::Hidden::kWanted);
    EXPECT_THAT(std::vector(wanted.hidden.shape, wanted.hidden.shape + 2), ElementsAre(4, FakeModel::kHidden));
    EXPECT_NE(wanted.hidden.data, nullptr);
    b.c.hidden.kept = b.hidden_states();
    for (const auto hidden : {ForwardPass::Hidden::kWanted, ForwardPass::Hidden::kUnwanted}) {
        const pb_forward kept = b.part.prepare(placed, hidden);
        EXPECT_EQ(kept.hidden.data, b.c.hidden.kept->all().data) << "a head goes on from them";
        EXPECT_EQ(kept.hidden.shape[0], 4);
    }
}

TEST(ForwardPass, AHeadIsGivenWhatItGoesOnFrom) {
    for (const uint32_t layer_count : {0u, 1u}) {
        Bench b(true, layer_count);
        const auto target = b.hidden_states();
        b.c.hidden.goes_on_from = target.get();
        PlacedInputs placed = b.place({3, 1});
        placed.draft_step = 6;
        placed.features = placed.ids;
        const pb_forward f = b.part.prepare(placed, ForwardPass::Hidden::kUnwanted);
        EXPECT_EQ(f.draft_step, 6u);
        EXPECT_EQ(f.features.data, target->all().data);
        EXPECT_EQ(f.features.shape[0], 8 + 2 * 2);
        EXPECT_EQ(f.feature_rows.data, placed.ids.data);
        EXPECT_EQ(f.hidden.rank, layer_count == 0 ? 0 : 2) << "one without layers makes none";
        EXPECT_NE(f.hidden.data, target->all().data);
    }
}

TEST(ForwardPass, ItsTimeIsAddedAndItsFaultSaysWhoseItIs) {
    Bench b;
    const pb_forward f = b.part.prepare(b.place({2}), ForwardPass::Hidden::kUnwanted);
    b.c.computed().computing = [&] { b.c.clock.advance_ns(40); };
    uint64_t ns = 5;
    ASSERT_TRUE(b.part.compute(f, ns));
    EXPECT_EQ(b.c.computed().passes, 1u);
    EXPECT_EQ(static_cast<const float*>(f.logits.data)[1], FakeModel::logit(2, 1));
    EXPECT_EQ(ns, 45u);
    b.c.computed().fault = "it cannot multiply";
    const auto done = b.part.compute(f, ns);
    EXPECT_THAT(done.error(), HasSubstr("it cannot multiply"));
    EXPECT_THAT(done.error(), HasSubstr("forward"));
}

TEST(ForwardPass, TokensThatAStepInFlightMakesAreFilledIn) {
    Bench b;
    b.place({3, 1});
    const pb_tensor sampled = b.placed.positions;
    b.part.fill_placeholders(b.batch, b.placed, sampled);
    EXPECT_THAT(b.called.filled, IsEmpty()) << "all ids are known";
    const Batch with_unknown = b.c.batch({2}, -1); // −1 and 0
    b.part.fill_placeholders(with_unknown, b.placed, sampled);
    ASSERT_EQ(b.called.filled.size(), 1u);
    EXPECT_EQ(b.called.filled[0].first.data, b.placed.ids.data);
    EXPECT_EQ(b.called.filled[0].second.data, sampled.data);
    b.c.device.opened.ops.fill_placeholders = nullptr; // of a device that cannot
    b.part.fill_placeholders(with_unknown, b.placed, sampled);
    EXPECT_EQ(b.called.filled.size(), 1u);
}

TEST(ForwardPass, AHeadKeepsTheHiddenStatesOfItsLogitRows) {
    Bench b;
    const auto target = b.hidden_states();
    b.c.hidden.goes_on_from = target.get();
    b.place({3, 1});
    b.batch.kept_row = 10;
    const pb_forward f = b.part.prepare(b.placed, ForwardPass::Hidden::kUnwanted);
    b.part.keep_hidden(f, b.batch, 0);
    EXPECT_THAT(b.called.gathered, IsEmpty()) << "there are no rows";
    b.part.keep_hidden(f, b.batch, 1);
    ASSERT_EQ(b.called.gathered.size(), 1u);
    const auto& [to, from, rows] = b.called.gathered[0];
    EXPECT_EQ(to.data, target->rows(10, 1).data);
    EXPECT_EQ(to.shape[0], 1);
    EXPECT_EQ(from.data, f.hidden.data);
    EXPECT_EQ(rows.data, f.logit_rows.data);
    EXPECT_EQ(rows.shape[0], 1) << "without those that fill a graph up";
    Bench without(true, 0);
    without.c.hidden.goes_on_from = target.get();
    without.place({3});
    without.part.keep_hidden(without.part.prepare(without.placed, ForwardPass::Hidden::kUnwanted), without.batch, 1);
    EXPECT_THAT(without.called.gathered, IsEmpty()) << "of a head without layers there are none";
}

}  // namespace
}  // namespace patchbay::runner::forward_pass_test
