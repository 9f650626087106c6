// In which form each weight comes to a device, which are not loaded, and what is left when one cannot be.
#include "runner/weight_loader.hpp"

#include <gmock/gmock.h>

#include "patchbay/sdk/model.hpp"
#include "played_runner.hpp"
#include "unit/weights/weight_specs.hpp"

namespace patchbay::runner::weight_loader_test {
namespace {

using testing::PlayedDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using weights::part;
using weights::Quantization;
using weights::spec;

struct FilledModel : testing::FakeModel { // whose weights without a tensor are 1, 2, …
    void fill(uint32_t index, float* out) {
        if (index == unfilled) throw Error(PB_FAILED, "it cannot count");
        for (int64_t i = 0; i < weights.at(index).cols; ++i) out[i] = static_cast<float>(i + 1);
    }
    uint32_t unfilled = UINT32_MAX;
};
constexpr pb_component kFilledModel = model<FilledModel>({"fake", "1.0.0", "plays"});

struct Prepared { // as a device saw it
    pb_weight_role role;
    pb_dtype dtype;
    int64_t rows, cols;
    uint32_t group; // 0: not quantised
    uint64_t uses;
    std::vector<float> first; // of a vector
};

pb_weight_spec vector(const char* name, int64_t cols) {
    return spec(cols, {part(name, 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR);
}
pb_weight* handle(uintptr_t number) { return reinterpret_cast<pb_weight*>(number); } // as the fake device makes them

constexpr uint32_t kVocabulary = 64;

struct Bench {
    Bench() {
        facts.vocab_size = kVocabulary;
        facts.layer_count = 1;
        device.fake.preparing = [this](const pb_weight_source& s) {
            if (prepared.size() == refused_at) throw Error(PB_UNSUPPORTED, "no such codes");
            Prepared p{s.role, s.dtype, s.rows, s.cols, s.quant ? s.quant->group : 0, s.uses, {}};
            const auto* const values = static_cast<const float*>(s.data);
            if (s.role == PB_WEIGHT_VECTOR && s.dtype == PB_F32) p.first.assign(values, values + s.cols);
            prepared.push_back(p);
        };
    }
    FilledModel& model() { return testing::played<FilledModel>(*view.component); }
    Result<> load(std::vector<pb_weight_spec> specs, const Ranks* ranks = nullptr,
                  const TargetWeights* of_target = nullptr) {
        model().weights = std::move(specs);
        const WeightLoader part(device.opened, ranks, of_target);
        return part.load({*view.component, facts, source, form}, loaded, run);
    }
    std::vector<pb_dtype> dtypes() const {
        std::vector<pb_dtype> out;
        for (const Prepared& p : prepared) out.push_back(p.dtype);
        return out;
    }
    ~Bench() { loaded.sinks.release(device.opened.plugin); }

    host::Model view = testing::view_of<host::Model, pb_model>(kFilledModel);
    PlayedDevice device;
    pb_model_facts facts = sized<pb_model_facts>();
    const weights::WeightSource source = weights::WeightSource::dummy(1);
    weights::WeightForm form;
    std::vector<Prepared> prepared;
    size_t refused_at = SIZE_MAX;
    BetweenSteps run = [](const std::function<void()>& f) {
        f();
        return true;
    };
    LoadedWeights loaded;
};

TEST(WeightLoader, EachWeightComesOnceInTheOrderOfItsModel) {
    Bench b;
    auto both = spec(4, {part("q", 8), part("k", 2)});
    both.uses = 1u << PB_WEIGHT_EMBEDDING;
    const auto done = b.load({both, vector("norm", 4), spec(6, {part("down", 4)})});
    ASSERT_TRUE(done) << done.error();
    EXPECT_THAT(b.loaded.by_spec, ElementsAre(handle(1), handle(2), handle(3)));
    EXPECT_EQ(b.loaded.owned, b.loaded.by_spec);
    ASSERT_THAT(b.prepared, SizeIs(3));
    EXPECT_EQ(b.prepared[0].rows, 10) << "of its parts together";
    EXPECT_EQ(b.prepared[0].uses, 1u << PB_WEIGHT_EMBEDDING);
    EXPECT_EQ(b.prepared[1].role, PB_WEIGHT_VECTOR);
    EXPECT_EQ(b.prepared[1].cols, 4);
    EXPECT_EQ(b.loaded.bytes, 3u * 100);
    EXPECT_EQ(b.loaded.form, "float32");
    EXPECT_EQ(b.loaded.work.linear_params, 10u * 4 + 4 * 6) << "a vector multiplies nothing";
}

TEST(WeightLoader, LinearsAreRoundedButForTheExactOnesAndTheHeadsAreNeverInt4) {
    Bench b;
    b.form = {PB_BF16, Quantization::kInt4, 32};
    auto router = spec(64, {part("router", 8)});
    router.exact = 1;
    const auto done = b.load({spec(64, {part("up", 32)}), router, spec(64, {part("head", kVocabulary)}),
                              spec(64, {part("gate", kVocabulary), part("up2", kVocabulary)}), vector("norm", 64)});
    ASSERT_TRUE(done) << done.error();
    EXPECT_EQ(b.dtypes()[0], PB_I4);
    EXPECT_EQ(b.dtypes()[1], PB_BF16) << "rounding would change its choices";
    EXPECT_EQ(b.dtypes()[2], PB_I8) << "it makes logits";
    EXPECT_EQ(b.dtypes()[3], PB_I4) << "rows as many as tokens, by chance, but of two parts";
    EXPECT_EQ(b.prepared[0].group, 32u);
    EXPECT_EQ(b.prepared[1].group, 0u);
    EXPECT_EQ(b.loaded.form, "int4 g32") << "that most parameters have";
    EXPECT_EQ(b.loaded.work.head_params, kVocabulary * 64u);
}

TEST(WeightLoader, TheFormIsThatOfMostParametersOfLinears) {
    Bench b;
    b.form = {PB_BF16, Quantization::kInt8, 128};
    auto router = spec(128, {part("router", 100)});
    router.exact = 1;
    ASSERT_TRUE(b.load({spec(128, {part("up", 60)}), router, spec(128, {part("down", 60)})}));
    EXPECT_EQ(b.loaded.form, "int8 g128") << "120 rows in two weights, and 100 in one";
    Bench rows;
    rows.form = {PB_BF16, Quantization::kInt8, weights::WeightForm::kWholeRows};
    ASSERT_TRUE(rows.load({spec(256, {part("up", 60)})}));
    EXPECT_EQ(rows.loaded.form, "int8 rows") << "with one scale each, whatever groups a device is given";
    EXPECT_EQ(rows.prepared[0].group, 128u);
    Bench none;
    none.form.dtype = PB_BF16;
    ASSERT_TRUE(none.load({vector("norm", 4)}));
    EXPECT_EQ(none.loaded.form, "bfloat16") << "of a model without linears";
}

TEST(WeightLoader, WhatAModelComputesItselfIsAVectorOfItsNumbers) {
    Bench b;
    ASSERT_TRUE(b.load({spec(4, {part("up", 8)}), spec(3, {}, PB_SHARD_NONE, PB_WEIGHT_VECTOR)}));
    EXPECT_EQ(b.prepared[1].rows, 1);
    EXPECT_EQ(b.prepared[1].dtype, PB_F32);
    EXPECT_THAT(b.prepared[1].first, ElementsAre(1, 2, 3));
    Bench fails;
    fails.model().unfilled = 0;
    EXPECT_THAT(fails.load({spec(3, {}, PB_SHARD_NONE, PB_WEIGHT_VECTOR)}).error(), HasSubstr("it cannot count"));
}

TEST(WeightLoader, SinksOfAttentionLieThereAsPlainNumbersToo) {
    Bench b;
    b.form = {PB_BF16, Quantization::kInt8, 32};
    b.model().layers[0].heads = 4;
    b.model().layers[0].sinks = 2;
    ASSERT_TRUE(b.load({vector("norm", 4), vector("sinks", 4)}));
    EXPECT_THAT(b.dtypes(), ElementsAre(PB_BF16, PB_F32));
    ASSERT_NE(b.loaded.sinks.of(0), nullptr);
    EXPECT_EQ(std::vector(b.loaded.sinks.of(0), b.loaded.sinks.of(0) + 4), b.prepared[1].first);
    Bench simulated; // whose device has no numbers
    simulated.device.opened.info.computes = 0;
    simulated.model().layers[0].heads = 4;
    simulated.model().layers[0].sinks = 1;
    ASSERT_TRUE(simulated.load({vector("sinks", 4)}));
    EXPECT_EQ(simulated.loaded.sinks.of(0), nullptr);
}

TEST(WeightLoader, WhatIsTiedOrTheTargetsIsNotLoaded) {
    Bench b;
    auto tied = spec(4, {part("head", kVocabulary)}), of_target = spec(0, {});
    tied.tied_to = 1;
    of_target.of_target = PB_TARGET_LM_HEAD;
    TargetWeights target{};
    target[PB_TARGET_LM_HEAD] = handle(77);
    const auto table = spec(4, {part("table", kVocabulary)}, PB_SHARD_NONE, PB_WEIGHT_EMBEDDING);
    const auto done = b.load({table, tied, of_target, vector("norm", 4)}, nullptr, &target);
    ASSERT_TRUE(done) << done.error();
    EXPECT_THAT(b.loaded.by_spec, ElementsAre(handle(1), handle(1), handle(77), handle(2)));
    EXPECT_THAT(b.loaded.owned, ElementsAre(handle(1), handle(2)));
    EXPECT_EQ(b.loaded.bytes, 2u * 100);
}

TEST(WeightLoader, RefusesTiesAndTargetsThatThereAreNot) {
    TargetWeights target{};
    const auto refusal = [&](uint32_t tied_to, pb_target_weight which, const TargetWeights* of) {
        Bench b;
        auto wrong = spec(0, {});
        wrong.tied_to = tied_to;
        wrong.of_target = which;
        const auto done = b.load({vector("norm", 4), wrong}, nullptr, of);
        EXPECT_THAT(b.loaded.owned, SizeIs(1)) << "what was placed is to be released";
        return done ? "" : done.error();
    };
    EXPECT_EQ(refusal(2, PB_TARGET_NONE, nullptr), "weight 1 is the same as a later one");
    EXPECT_EQ(refusal(0, PB_TARGET_LM_HEAD, &target), "");
    const std::string no_head = "weight 1 is the target's, of a model that is not a head";
    EXPECT_EQ(refusal(0, PB_TARGET_LM_HEAD, nullptr), no_head);
    EXPECT_EQ(refusal(0, 3, &target), no_head) << "a target has no such weight";
    EXPECT_EQ(refusal(0, -1, &target), no_head);
}

TEST(WeightLoader, ARankLoadsItsShare) {
    struct Second final : Ranks {
        const pb_group& wire() const override { return group; }
        void watch(std::function<void()>) override {}
        Result<uint32_t> agree_blocks(uint32_t here) override { return here; }
        pb_group group{sizeof(pb_group), 1, 4, 0, "", nullptr, nullptr, nullptr};
    } ranks;
    Bench b;
    ASSERT_TRUE(b.load({spec(8, {part("up", 32)}, PB_SHARD_ROWS), spec(32, {part("down", 8)}, PB_SHARD_COLS),
                        vector("norm", 8)}, &ranks));
    EXPECT_EQ(b.prepared[0].rows, 8);
    EXPECT_EQ(b.prepared[1].rows, 8);
    EXPECT_EQ(b.prepared[1].cols, 8);
    EXPECT_EQ(b.prepared[2].cols, 8);
    EXPECT_EQ(b.loaded.work.linear_params, 2u * 8 * 8) << "that this rank multiplies by";
}

TEST(WeightLoader, NoFurtherWeightIsLoadedWhereAnotherRankIsGone) {
    struct Lost final : Ranks {
        const pb_group& wire() const override { return group; }
        void watch(std::function<void()>) override {}
        Result<uint32_t> agree_blocks(uint32_t here) override { return here; }
        Result<> check() const override { return looks++ < 2 ? Result<>() : fail("rank 1 is gone"); }
        mutable int looks = 0;
        pb_group group{sizeof(pb_group), 0, 2, 0, "", nullptr, nullptr, nullptr};
    } ranks;
    Bench b;
    EXPECT_EQ(b.load({vector("a", 4), vector("b", 4), vector("c", 4), vector("d", 4)}, &ranks).error(),
              "rank 1 is gone");
    EXPECT_THAT(b.prepared, SizeIs(2));
    EXPECT_THAT(b.loaded.owned, SizeIs(2)) << "what was placed is to be released";
}

TEST(WeightLoader, ExpertsCountByTheTokensThatAreSentToThem) {
    Bench b;
    std::vector<pb_weight_spec> specs = {spec(4, {part("up", 8)})};
    for (const float share : {0.25f, 0.25f, 0.5f, 1.0f}) {
        specs.push_back(spec(4, {part("expert", 8)}));
        specs.back().share = share;
    }
    ASSERT_TRUE(b.load(specs));
    const ModelWork& work = b.loaded.work;
    EXPECT_EQ(work.linear_params, 2u * 32) << "those of all tokens";
    ASSERT_THAT(work.experts, SizeIs(2));
    EXPECT_EQ(work.experts[0].share, 0.25);
    EXPECT_EQ(work.experts[0].params, 2u * 32);
    EXPECT_EQ(work.experts[0].bytes, 2u * 100);
    EXPECT_EQ(work.experts[1].params, 32u);
}

TEST(WeightLoader, ADeviceThatCannotHaveTheCodesSaysOfWhichWeight) {
    Bench b;
    b.form = {PB_BF16, Quantization::kInt8, 32};
    b.refused_at = 1;
    const auto done = b.load({spec(32, {part("up", 8)}), spec(32, {part("down", 8)})});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.code(), StatusCode::kUnsupported);
    EXPECT_THAT(done.error(), HasSubstr("no such codes"));
    EXPECT_THAT(done.error(), HasSubstr("of model 'fake', weight 'down' as int8 g32; with quantization: none it is"));
    EXPECT_THAT(b.loaded.owned, ElementsAre(handle(1)));
    Bench plain;
    plain.refused_at = 0;
    EXPECT_THAT(plain.load({spec(32, {part("up", 8)})}).error(), ::testing::Not(HasSubstr("quantization")));
}

TEST(WeightLoader, StopsWhereTheEngineDoes) {
    Bench b;
    int ran = 0;
    b.run = [&](const std::function<void()>& f) {
        if (++ran == 3) return false;
        f();
        return true;
    };
    const auto done = b.load({vector("a", 4), vector("b", 4), vector("c", 4), vector("d", 4)});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.code(), StatusCode::kUnavailable);
    EXPECT_EQ(done.error(), "the engine has stopped");
    EXPECT_EQ(ran, 3);
    EXPECT_THAT(b.loaded.owned, ElementsAre(handle(1), handle(2)));
}

TEST(WeightLoader, AWeightThatIsPlacedWithoutItsSinksIsReleasedToo) {
    Bench b;
    b.model().layers[0].heads = 4;
    b.model().layers[0].sinks = 1;
    b.device.fake.is_full = true;
    EXPECT_THAT(b.load({vector("sinks", 4)}).error(), HasSubstr("there is no memory"));
    EXPECT_THAT(b.loaded.owned, SizeIs(1));
    EXPECT_EQ(b.loaded.sinks.of(0), nullptr);
}

}  // namespace
}  // namespace patchbay::runner::weight_loader_test
