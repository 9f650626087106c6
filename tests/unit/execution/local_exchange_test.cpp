// Another model and another attention for a runner of one layer.
#include "execution/local_exchange.hpp"

#include <gmock/gmock.h>

#include "unit/runner/played_runner.hpp"

namespace patchbay::execution::local_exchange_test {
namespace {

using runner::testing::FakeModel;
using runner::testing::FakePages;
using runner::testing::played;
using runner::testing::PlayedRunner;
using runner::testing::view_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::unique_ptr<host::Component> other_attention(const std::string& tag = "A") {
    auto out = view_of<host::Attention, pb_attention>(runner::testing::kFakePages).component;
    played<FakePages>(*out).tag = tag;
    return out;
}

TEST(LocalAttention, IsWhatTheRunnerComputesWith) {
    PlayedRunner r;
    LocalAttention part(*r.runner);
    const host::Component* const first = &r.runner->attention().component();
    EXPECT_EQ(part.layout(), "A");
    const auto kept = part.give();
    EXPECT_EQ(kept.get(), first);
    const auto next = other_attention("B");
    EXPECT_TRUE(part.check(*next));
    EXPECT_EQ(&r.runner->attention().component(), first) << "it was only looked at";
    const auto reads = part.use(*next);
    ASSERT_TRUE(reads) << reads.error();
    EXPECT_FALSE(*reads) << "pages mean something else to it";
    EXPECT_EQ(&r.runner->attention().component(), next.get());
    EXPECT_EQ(part.layout(), "B");
    EXPECT_TRUE(part.use(*first)) << "it is bound still";
    EXPECT_EQ(part.layout(), "A");
    part.end();
}

TEST(LocalAttention, OneOfTheSameLayoutReadsThePages) {
    PlayedRunner r;
    LocalAttention part(*r.runner);
    const auto kept = part.give(), next = other_attention();
    EXPECT_TRUE(*part.use(*next));
    part.forget();
    part.end();
}

TEST(LocalAttention, OneWithLargerPagesIsRefused) {
    PlayedRunner r;
    LocalAttention part(*r.runner);
    const auto next = other_attention();
    played<FakePages>(*next).page_bytes = 128;
    EXPECT_THAT(part.check(*next).error(), HasSubstr("a page of layer 0 takes 128 bytes"));
}

struct ModelBench {
    ModelBench() { fake().weights = {weights()}; }
    static pb_weight_spec weights() {
        pb_weight_spec out = sized<pb_weight_spec>();
        out.role = PB_WEIGHT_VECTOR;
        out.cols = 2; // the model makes its numbers
        return out;
    }
    FakeModel& fake() { return played<FakeModel>(*next.component); }
    Result<std::unique_ptr<runner::LoadedWeights>> load() {
        return part.load(*next.component, choice, {}, [this](const std::function<void()>& f) {
            between_steps += 1;
            f();
            return true;
        });
    }

    PlayedRunner r;
    LocalModel part{*r.runner};
    host::Model next = view_of<host::Model, pb_model>(runner::testing::kFakeModel);
    ModelChoice choice{{{"architectures.0", "Fake"}}, weights::WeightSource::dummy(1), "Fake", "fake", {}, {}};
    int between_steps = 0;
};

TEST(LocalModel, AnotherIsLoadedBesideTheOneInUseAndTakesItsPlace) {
    ModelBench b;
    const host::Component* const first = &b.r.runner->model().component();
    const auto kept = b.part.give();
    EXPECT_EQ(kept.get(), first);
    ASSERT_TRUE(b.part.check(*b.next.component, b.choice));
    auto loaded = b.load();
    ASSERT_TRUE(loaded) << loaded.error();
    EXPECT_THAT((*loaded)->owned, SizeIs(1));
    EXPECT_EQ(b.between_steps, 1);
    EXPECT_EQ(&b.r.runner->model().component(), first) << "until it is used";
    EXPECT_THAT(b.r.runner->weights().owned, IsEmpty());
    ASSERT_TRUE(b.part.use(*b.next.component, **loaded));
    EXPECT_EQ(&b.r.runner->model().component(), b.next.component.get());
    EXPECT_THAT(b.r.runner->weights().owned, SizeIs(1));
    EXPECT_THAT((*loaded)->owned, IsEmpty()) << "those that were in use, of which there are none";
    ASSERT_TRUE(b.part.use(*first, **loaded)) << "and back";
    EXPECT_EQ(&b.r.runner->model().component(), first);
    EXPECT_THAT((*loaded)->owned, SizeIs(1));
    b.part.release(**loaded);
    EXPECT_EQ(b.r.fake->released, 1u);
    EXPECT_THAT((*loaded)->owned, IsEmpty());
}

TEST(LocalModel, OneThatKeepsOtherKvIsRefusedBeforeAnythingIsLoaded) {
    ModelBench b;
    b.fake().layers[0].head_dim = 4;
    const auto checked = b.part.check(*b.next.component, b.choice);
    EXPECT_THAT(checked.error(), HasSubstr("layer 0 keeps other KV"));
    EXPECT_EQ(checked.code(), StatusCode::kUnsupported);
    EXPECT_THAT(b.load().error(), HasSubstr("layer 0 keeps other KV"));
    EXPECT_EQ(b.between_steps, 0);
    EXPECT_EQ(b.r.fake->allocated, 0u);
}

TEST(LocalModel, WhatCannotBeLoadedIsReleased) {
    ModelBench b;
    b.fake().weights.push_back(ModelBench::weights());
    b.r.fake->preparing = [&](const pb_weight_source&) {
        if (b.r.fake->allocated == 1) throw Error(PB_FAILED, "there is no memory");
    };
    EXPECT_THAT(b.load().error(), HasSubstr("there is no memory"));
    EXPECT_EQ(b.r.fake->released, 1u);
}

}  // namespace
}  // namespace patchbay::execution::local_exchange_test
