// Weights on a device: which are loaded, which are another's, what they come to, and that each is released once.
#include "runner/device_weights.hpp"

#include <gmock/gmock.h>

#include "fake_device.hpp"
#include "patchbay/sdk/model.hpp"
#include "unit/weights/weight_specs.hpp"

namespace patchbay::runner::device_weights_test {
namespace {

using testing::PlayedDevice;
using weights::part;
using weights::spec;

struct FakeModel {
    static constexpr const char* kArchitectures[] = {"Fake", nullptr};
    std::vector<pb_weight_spec> specs;
    pb_model_facts load_config(const ModelConfig&) { return sized<pb_model_facts>(); }
    uint32_t weight_count() const { return static_cast<uint32_t>(specs.size()); }
    pb_weight_spec weight(uint32_t index) const { return specs[index]; }
    void fill(uint32_t, float* out) { *out = 1; }
    pb_kv_spec kv_spec(uint32_t) {
        pb_kv_spec out = sized<pb_kv_spec>();
        out.heads = 2;
        out.head_dim = 8;
        return out;
    }
    void forward(const Forward&) {}
};
constexpr pb_component kFakeModel = model<FakeModel>({"fake", "1.0.0", "plays"});

constexpr uint32_t kVocabulary = 64;

class DeviceWeightsTest : public ::testing::Test {
  protected:
    DeviceWeightsTest() {
        facts_.vocab_size = kVocabulary;
        facts_.layer_count = 1;
        facts_.embedding = 0;
        facts_.lm_head = 1;
        model().specs = {spec(4, {part("table", kVocabulary)}, PB_SHARD_NONE, PB_WEIGHT_EMBEDDING),
                         spec(4, {part("head", kVocabulary)}), spec(4, {part("up", 8)})};
    }
    FakeModel& model() { return static_cast<detail::Box<FakeModel>*>(component_->self())->value; }
    WeightsToLoad wanted() const { return {*component_, facts_, source_, form_}; }
    static bool at_once(const std::function<void()>& f) {
        f();
        return true;
    }

    PlayedDevice device_;
    std::unique_ptr<host::Component> component_ = *host::Component::create(nullptr, kFakeModel, {}, {});
    pb_model_facts facts_ = sized<pb_model_facts>();
    const weights::WeightSource source_ = weights::WeightSource::dummy(1);
    const weights::WeightForm form_;
    pb_kv_spec layer_ = model().kv_spec(0);
};

TEST_F(DeviceWeightsTest, CountWhatATokenMultipliesBy) {
    model().specs.push_back(spec(4, {part("expert", 8)}));
    model().specs.back().share = 0.25;
    DeviceWeights weights(device_.opened, nullptr);
    std::vector<pb_kv_spec> layers(4, layer_);
    layers[1].sliding_window = layers[2].sliding_window = 16;
    layers[3].heads = layers[3].kv_heads = layers[3].head_dim = 0; // a recurrent one
    ASSERT_TRUE(weights.load(wanted(), layers));
    const ModelWork& work = weights.in_use().work;
    EXPECT_EQ(work.head_params, kVocabulary * 4u);
    EXPECT_EQ(work.linear_params, 8u * 4);
    EXPECT_EQ(work.params_of_token(), 8 * 4 + 0.25 * 8 * 4);
    EXPECT_EQ(work.attention, (std::vector<AttentionWork>{{0, 4u * 2 * 8}, {16, 2 * 4u * 2 * 8}}));
    EXPECT_EQ(weights.in_use().bytes, 4u * 100);
    EXPECT_EQ(weights.in_use().form, "float32");
}

TEST_F(DeviceWeightsTest, ThatAreTiedAreLoadedAndReleasedOnce) {
    model().specs[1].tied_to = 1;
    {
        DeviceWeights weights(device_.opened, nullptr);
        ASSERT_TRUE(weights.load(wanted(), {}));
        EXPECT_EQ(weights.in_use().by_spec.size(), 3u);
        EXPECT_EQ(weights.in_use().by_spec[1], weights.in_use().by_spec[0]);
    }
    EXPECT_EQ(device_.fake.allocated, 2u);
    EXPECT_EQ(device_.fake.released, 2u);
}

TEST_F(DeviceWeightsTest, AreNotTiedToALaterOne) {
    model().specs[1].tied_to = 3;
    {
        DeviceWeights weights(device_.opened, nullptr);
        EXPECT_EQ(weights.load(wanted(), {}).error(), "weight 1 is the same as a later one");
    }
    EXPECT_EQ(device_.fake.allocated, 1u);
    EXPECT_EQ(device_.fake.released, 1u) << "what was loaded by then";
}

TEST_F(DeviceWeightsTest, OfAHeadAreItsTargets) {
    DeviceWeights target(device_.opened, nullptr), head(device_.opened, nullptr);
    ASSERT_TRUE(target.load(wanted(), {}));
    const LoadedWeights& its = target.in_use();
    model().specs = {spec(0, {})};
    model().specs[0].of_target = PB_TARGET_LM_HEAD;
    EXPECT_EQ(head.load(wanted(), {}).error(), "weight 0 is the target's, of a model that is not a head");
    facts_.lm_head = 3;
    EXPECT_EQ(head.share_target_weights(target, *component_, facts_).error(),
              "model 'fake' has 3 weights, and says that its token table is number 0 and its lm head number 3");
    facts_.lm_head = 1;
    ASSERT_TRUE(head.share_target_weights(target, *component_, facts_));
    ASSERT_TRUE(head.load(wanted(), {}));
    EXPECT_EQ(head.in_use().by_spec[0], its.by_spec[1]);
    EXPECT_TRUE(head.in_use().owned.empty());
}

TEST_F(DeviceWeightsTest, AreLoadedBesideThoseInUseAndExchangedForThem) {
    DeviceWeights weights(device_.opened, nullptr);
    ASSERT_TRUE(weights.load(wanted(), {}));
    const std::vector<pb_weight*> first = weights.in_use().owned;
    auto other = weights.load_beside(wanted(), {&layer_, 1}, at_once);
    ASSERT_TRUE(other) << other.error();
    EXPECT_EQ((*other)->facts.vocab_size, kVocabulary);
    EXPECT_EQ(weights.in_use().owned, first);
    weights.use(**other);
    EXPECT_EQ((*other)->owned, first);
    weights.release(**other);
    EXPECT_EQ(device_.fake.released, 3u);
    EXPECT_TRUE((*other)->owned.empty());
}

TEST_F(DeviceWeightsTest, AreReleasedWhereTheLoadingBesideFails) {
    DeviceWeights weights(device_.opened, nullptr);
    ASSERT_TRUE(weights.load(wanted(), {}));
    int calls = 0;
    const auto other = weights.load_beside(wanted(), {}, [&](const std::function<void()>& f) {
        calls += 1;
        const bool goes_on = calls != 3; // the third weight
        if (goes_on) f();
        return goes_on;
    });
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error(), "the engine has stopped");
    EXPECT_EQ(calls, 4) << "and once more, to release what was loaded";
    EXPECT_EQ(device_.fake.allocated, 5u);
    EXPECT_EQ(device_.fake.released, 2u);
}

}  // namespace
}  // namespace patchbay::runner::device_weights_test
