// One pass, computed by the model or by a graph in its place.
#include "runner/graphed_pass.hpp"

#include <gmock/gmock.h>

#include "played_context.hpp"

namespace patchbay::runner::graphed_pass_test {
namespace {

using testing::PlayedContext;
using testing::with_graphs;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Bench {
    Bench() { part.graphs().open(with_graphs()); }
    // As a runner's passes do it; whether the model may be asked is up to the choice.
    Result<GraphUse> run(const Batch& batch) {
        const GraphChoice choice = part.graphs().choose(batch);
        const Batch& placed = choice.bucket ? part.graphs().padded() : batch;
        c.device.fake.calls.clear();
        PB_CHECK(part.begin(placed));
        PB_CHECK(steps.begin(times));
        PB_TRY(const GraphUse use, part.place(placed, choice, {}));
        PB_CHECK(part.plan());
        const Result<> done = part.compute(placed, batch.arrays().logit_rows.size());
        uint64_t waited = 0;
        PB_CHECK(part.check(batch.tokens(), done, steps.end(times, waited)));
        if (choice.bucket && !part.is_replayed() && !choice.refused) part.capture(*choice.bucket, steps);
        return use;
    }
    PlayedContext c;
    CallTimes times;
    DeviceSteps steps{c.device.opened, c.clock};
    GraphedPass part{c.context(), times};
};

TEST(GraphedPass, TheSecondPassOfABucketIsAReplay) {
    Bench b;
    const auto first = b.run(b.c.batch({1, 1}));
    ASSERT_TRUE(first) << first.error();
    EXPECT_EQ(first->miss, GraphMiss::kNotCaptured);
    EXPECT_EQ(b.c.computed().passes, 2u) << "computed, and recorded";
    const auto* const logits = static_cast<const float*>(b.part.logits().data);
    EXPECT_EQ(logits[0], testing::FakeModel::logit(1, 0));
    const auto second = b.run(b.c.batch({1, 1}));
    ASSERT_TRUE(second) << second.error();
    EXPECT_EQ(second->miss, GraphMiss::kNone);
    EXPECT_EQ(second->size, 2u);
    EXPECT_TRUE(b.part.is_replayed());
    EXPECT_EQ(b.c.computed().passes, 2u) << "the model is not asked again";
    EXPECT_THAT(b.c.device.fake.calls, Contains("graph_launch"));
    EXPECT_EQ(b.part.logits().data, logits) << "where the graph left them";
}

TEST(GraphedPass, ItsLogitsStayWhereTheyAreWhereItTakesSeveralMemories) {
    Bench b;
    b.c.computed().scratch = 8 << 20;
    const auto done = b.run(b.c.batch({1, 1})); // and captured
    ASSERT_TRUE(done) << done.error();
    const auto* const at = static_cast<const std::byte*>(b.part.logits().data);
    const auto is_in = [&](const auto& memory) {
        return at >= memory.first && at < static_cast<const std::byte*>(memory.first) + memory.second;
    };
    EXPECT_TRUE(std::ranges::any_of(b.c.device.fake.sizes, is_in)) << "their memory was given back";
    ASSERT_TRUE(b.run(b.c.batch({1, 1})));
    EXPECT_TRUE(b.part.is_replayed());
    EXPECT_EQ(b.part.logits().data, at) << "where the graph leaves them";
}

TEST(GraphedPass, StandsWhateverBecomesOfItsGraph) {
    Bench b;
    const Batch batch = b.c.batch({1, 1});
    const GraphChoice choice = b.part.graphs().choose(batch);
    ASSERT_TRUE(b.part.begin(b.part.graphs().padded()));
    ASSERT_TRUE(b.steps.begin(b.times));
    ASSERT_TRUE(b.part.place(b.part.graphs().padded(), choice, {}));
    ASSERT_TRUE(b.part.plan());
    const Result<> done = b.part.compute(b.part.graphs().padded(), 2);
    uint64_t waited = 0;
    ASSERT_TRUE(b.part.check(2, done, b.steps.end(b.times, waited)));
    b.c.computed().fault = "it cannot be captured";
    b.part.capture(*choice.bucket, b.steps);
    const auto* const logits = static_cast<const float*>(b.part.logits().data);
    EXPECT_EQ(logits[0], testing::FakeModel::logit(1, 0));
    EXPECT_EQ(b.c.device.fake.graphs, 0u);
    const auto next = b.run(b.c.batch({1, 1}));
    ASSERT_TRUE(next) << next.error();
    EXPECT_FALSE(b.part.is_replayed());
    EXPECT_THAT(b.c.device.fake.calls, Not(Contains("graph_begin"))) << "it is not tried again";
}

TEST(GraphedPass, InputsThatMoveTakeTheGraphsWithThem) {
    Bench b;
    ASSERT_TRUE(b.run(b.c.batch({1, 1})));
    ASSERT_EQ(b.c.device.fake.graphs, 1u);
    ASSERT_TRUE(b.run(b.c.batch({40, 1}))) << "larger than any graph, and than what there is room for";
    EXPECT_EQ(b.c.device.fake.graphs, 0u);
    const auto again = b.run(b.c.batch({1, 1}));
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(again->miss, GraphMiss::kNotCaptured);
}

TEST(GraphedPass, AFaultOfTheModelIsThePassesAndTheNextOneForgetsIt) {
    Bench b;
    b.c.computed().fault = "it cannot multiply";
    EXPECT_THAT(b.run(b.c.batch({1, 1})).error(), HasSubstr("it cannot multiply"));
    EXPECT_TRUE(b.run(b.c.batch({1, 1})));
}

}  // namespace
}  // namespace patchbay::runner::graphed_pass_test
