// Which weights of a model are sinks of its attention, and where their numbers lie on the device.
#include "runner/attention_sinks.hpp"

#include <gmock/gmock.h>

#include "played_runner.hpp"
#include "unit/weights/weight_specs.hpp"

namespace patchbay::runner::attention_sinks_test {
namespace {

using testing::FakeModel;
using testing::PlayedDevice;
using weights::part;
using weights::spec;

pb_kv_spec layer_with(uint32_t sinks, uint32_t heads = 2) {
    pb_kv_spec out = FakeModel::layer();
    out.heads = heads;
    out.sinks = sinks;
    return out;
}

// Weights: a matrix, and two vectors of two numbers.
struct Bench {
    Bench() {
        model().weights = {spec(4, {part("up", 8)}), spec(2, {part("first", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR),
                           spec(2, {part("second", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR)};
    }
    FakeModel& model() { return testing::played<FakeModel>(*view.component); }
    Result<AttentionSinks> made(std::vector<pb_kv_spec> layers) {
        model().layers = std::move(layers);
        return AttentionSinks::of(*view.component, static_cast<uint32_t>(model().layers.size()));
    }
    std::string refusal(const pb_kv_spec& second_layer) {
        const auto out = made({layer_with(2), second_layer});
        return out ? "" : out.error();
    }

    host::Model view = testing::view_of<host::Model, pb_model>(testing::kFakeModel);
    PlayedDevice device;
};

TEST(AttentionSinks, AreInTheWeightsThatLayersName) {
    Bench b;
    const auto sinks = b.made({layer_with(2), layer_with(0), layer_with(3)});
    ASSERT_TRUE(sinks) << sinks.error();
    EXPECT_FALSE(sinks->are_in(0));
    EXPECT_TRUE(sinks->are_in(1));
    EXPECT_TRUE(sinks->are_in(2));
    for (const uint32_t layer : {0, 1, 2, 3}) EXPECT_EQ(sinks->of(layer), nullptr) << "they are not placed yet";
    const auto none = b.made({layer_with(0)});
    ASSERT_TRUE(none);
    for (const uint32_t weight : {0, 1, 2}) EXPECT_FALSE(none->are_in(weight));
}

TEST(AttentionSinks, AreCopiedToTheDeviceForEachLayer) {
    Bench b;
    auto sinks = b.made({layer_with(2), layer_with(0), layer_with(3), layer_with(2)});
    ASSERT_TRUE(sinks) << sinks.error();
    std::vector<float> first = {1.5f, -2}, second = {3, 4};
    ASSERT_TRUE(sinks->place(b.device.opened.plugin, 1, std::as_bytes(std::span(first))));
    ASSERT_TRUE(sinks->place(b.device.opened.plugin, 2, std::as_bytes(std::span(second))));
    ASSERT_TRUE(sinks->place(b.device.opened.plugin, 0, std::as_bytes(std::span(second)))) << "no layer's";
    const std::vector<float> expected_first = first, expected_second = second;
    first = second = {0, 0}; // the memory that they were loaded to is used again
    const auto there = [&](uint32_t layer) { return std::vector(sinks->of(layer), sinks->of(layer) + 2); };
    EXPECT_EQ(there(0), expected_first);
    EXPECT_EQ(sinks->of(1), nullptr);
    EXPECT_EQ(there(2), expected_second);
    EXPECT_EQ(there(3), expected_first);
    EXPECT_EQ(sinks->of(4), nullptr) << "there is no such layer";
    EXPECT_EQ(b.device.fake.memories, 3u);
    sinks->release(b.device.opened.plugin);
    sinks->release(b.device.opened.plugin); // which has nothing to release
    EXPECT_EQ(b.device.fake.memories, 0u);
    for (const uint32_t layer : {0, 2, 3}) EXPECT_EQ(sinks->of(layer), nullptr);
}

TEST(AttentionSinks, ADeviceWithoutMemoryHasNone) {
    Bench b;
    auto sinks = b.made({layer_with(2)});
    ASSERT_TRUE(sinks);
    b.device.fake.is_full = true;
    const std::vector<float> values = {1, 2};
    EXPECT_FALSE(sinks->place(b.device.opened.plugin, 1, std::as_bytes(std::span(values))));
    sinks->release(b.device.opened.plugin);
    EXPECT_EQ(b.device.fake.memories, 0u);
}

TEST(AttentionSinks, AreRefusedWhereTheyAreNoVectorOfTheHeads) {
    Bench b;
    EXPECT_EQ(b.refusal(layer_with(3)), "");
    EXPECT_EQ(b.refusal(layer_with(4)), "layer 1 has its attention sinks in weight 3, and there are 3");
    const std::string no_vector = ", which is not a vector of its own";
    EXPECT_EQ(b.refusal(layer_with(1)), "layer 1 has its attention sinks in weight 0" + no_vector);
    EXPECT_EQ(b.refusal(layer_with(3, 5)),
              "layer 1 has its attention sinks in weight 2, a vector of 2, expected one number for each of its 5 "
              "heads");
    b.model().weights[2].tied_to = 2;
    EXPECT_EQ(b.refusal(layer_with(3)), "layer 1 has its attention sinks in weight 2" + no_vector);
    b.model().weights[2].tied_to = 0;
    b.model().weights[2].of_target = PB_TARGET_EMBEDDING;
    EXPECT_EQ(b.refusal(layer_with(3)), "layer 1 has its attention sinks in weight 2" + no_vector);
}

}  // namespace
}  // namespace patchbay::runner::attention_sinks_test
