// Rows become tokens: by the sampler in the slot, by the one it replaced where it fails, or as the device gave them.
#include "engine/sampling/sampler_port.hpp"

#include <gmock/gmock.h>

#include "engine/loop/step_context.hpp"
#include "engine/sampling/logits_reader.hpp"
#include "engine/sampling/sample_rows.hpp"
#include "engine/sampling/step_samples.hpp"
#include "engine/swap/swap_journal.hpp"
#include "unit/engine_parts/fake_policies.hpp"
#include "unit/engine_parts/part_fixture.hpp"
#include "unit/host/slot_steps.hpp"

namespace patchbay::engine::testing::sampler_port_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kVocab = 4;

class Reader final : public LogitsReader { // notes what it is shown, and has the last word on row 0
  public:
    Result<> read(const host::Component&, const SampleRows& rows, std::span<const float> logits) override {
        shown = {logits.begin(), logits.end()};
        count = rows.count();
        return {};
    }
    void decide(StepSamples& samples) override {
        if (word >= 0) samples.tokens[0] = word;
    }
    std::vector<float> shown;
    uint32_t count = 0;
    TokenId word = -1;
};

struct DeviceSampler {
    static constexpr const char* kDevice = "cpu";
    pb_sample_plan plan(SampleBatch&) { return {}; }
    void enqueue(const pb_sample_work&) {}
};
constexpr pb_component kDeviceSampler = patchbay::sampler<DeviceSampler>({"device", "1.0.0", "samples there"});

struct Bench {
    Bench() { port.connect(executor, reader); }
    void add(bool statistics = false) {
        pb_sample_row row{};
        row.params = &params;
        rows.add(row, statistics);
        logits.insert(logits.end(), {0.0f, 1.0f, 2.0f, 3.0f});
    }
    Result<> sample() {
        execution::StepOutput out;
        out.logits = logits;
        return port.sample(rows, out, samples);
    }
    FakeSampler& put_on_probation() {
        Played<FakeSampler> next = play<FakeSampler>(kFakeSampler);
        swap = host::testing::put_on_probation(port.slot(), std::move(next.component), "sampler", "fake");
        return next.policy;
    }

    VirtualClock clock;
    StepContext context;
    std::vector<host::Identity> plugins;
    SwapJournal journal{context, plugins};
    FakeExecutor executor;
    Reader reader;
    pb_sampling_params params = plain_params();
    SampleRows rows;
    std::vector<float> logits;
    StepSamples samples;
    SamplerPort port{kVocab, clock, context, journal};
    FakeSampler& policy = install<FakeSampler>(port.slot(), kFakeSampler);
    std::shared_ptr<host::Swap> swap;
};

void highest(SampleBatch& b) {
    for (uint32_t i = 0; i < b.size(); ++i) {
        const auto row = b.logits(i);
        b.raw.tokens[i] = static_cast<int32_t>(std::ranges::max_element(row) - row.begin());
    }
}

TEST(SamplerPort, ShowsTheSamplerItsRowsAndTakesItsTokens) {
    Bench b;
    b.add();
    b.add();
    b.params.logprobs = 0;
    b.policy.sampled = [&](SampleBatch& batch) {
        highest(batch);
        batch.raw.logprobs[1] = -0.5f;
        batch.raw.faults[1] = 1;
        b.clock.advance_ns(30);
    };
    ASSERT_TRUE(b.sample());
    EXPECT_THAT(b.samples.tokens, ElementsAre(3, 3));
    EXPECT_EQ(b.samples.logprobs[1], -0.5f);
    EXPECT_EQ(b.context.report.calls.sampler_faults, 1u);
    EXPECT_EQ(b.context.report.calls.sampler_breaches, 0u) << "it says so itself";
    EXPECT_EQ(b.context.report.calls.sample_ns, 30u);
    EXPECT_EQ(b.port.text(), "sampler 'fake'");
}

TEST(SamplerPort, AReaderSeesLogitsBeforeTheSamplerWritesIntoThemAndHasTheLastWord) {
    Bench b;
    b.add();
    b.reader.word = 1;
    b.policy.sampled = [](SampleBatch& batch) { std::ranges::fill(batch.logits(0), -1.0f); };
    ASSERT_TRUE(b.sample());
    EXPECT_THAT(b.reader.shown, ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(b.reader.count, 1u);
    EXPECT_THAT(b.samples.tokens, ElementsAre(1));
}

TEST(SamplerPort, StatisticsAreOfTheRawLogitsOfRowsThatWantThem) {
    Bench b;
    b.add();
    b.add(true);
    ASSERT_TRUE(b.sample());
    ASSERT_EQ(b.samples.statistics.size(), 2u);
    EXPECT_EQ(b.samples.statistics[1].max_logit, 3);
    EXPECT_EQ(b.samples.statistics[0].max_logit, 0) << "that row wants none";
}

TEST(SamplerPort, WhatWasSampledInThePassIsTakenAsItIs) {
    Bench b;
    b.add();
    const std::vector<int32_t> tokens = {2};
    const std::vector<float> logprobs = {-1};
    execution::StepOutput out;
    out.is_sampled = true;
    out.sampled = {tokens, {}, logprobs, {}, 0, 3};
    b.policy.sampled = [](SampleBatch&) { FAIL() << "there is nothing left to sample"; };
    ASSERT_TRUE(b.port.sample(b.rows, out, b.samples));
    EXPECT_THAT(b.samples.tokens, ElementsAre(2));
    EXPECT_EQ(b.context.report.calls.sampler_faults, 3u);
}

TEST(SamplerPort, WithoutRowsTheSamplerIsNotCalled) {
    Bench b;
    b.samples.tokens = {7};
    b.policy.sampled = [](SampleBatch&) { FAIL() << "there is no row"; };
    ASSERT_TRUE(b.sample());
    EXPECT_THAT(b.samples.tokens, IsEmpty());
}

TEST(SamplerPort, AFailureFailsTheStep) {
    Bench b;
    b.add();
    b.policy.sampled = [](SampleBatch&) { throw Error(PB_FAILED, "no dice"); };
    const auto done = b.sample();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error(), "sampler 'fake': sample: no dice");
}

TEST(SamplerPort, OneOnProbationThatFailsLeavesItsRowsToItsPredecessorAsTheyWere) {
    Bench b;
    b.add();
    b.policy.sampled = highest;
    b.put_on_probation().sampled = [](SampleBatch& batch) {
        batch.logits(0)[0] = 100;
        throw Error(PB_FAILED, "no dice");
    };
    ASSERT_TRUE(b.sample());
    EXPECT_THAT(b.samples.tokens, ElementsAre(3)) << "by the logits that the model gave";
    EXPECT_EQ(b.swap->record().state, host::SwapState::kRolledBack);
    EXPECT_EQ(b.swap->record().phase, "sample");
    EXPECT_EQ(b.context.report.swaps.size(), 1u);
}

TEST(SamplerPort, ATokenThatIsNoneEndsProbationAndLaterItsRequestOnly) {
    for (const TokenId none : {-1, static_cast<TokenId>(kVocab)}) {
        Bench b;
        b.add();
        const auto gives = [none](SampleBatch& batch) { batch.raw.tokens[0] = none; };
        b.policy.sampled = highest;
        b.put_on_probation().sampled = gives;
        ASSERT_TRUE(b.sample());
        EXPECT_THAT(b.samples.tokens, ElementsAre(3));
        EXPECT_THAT(b.swap->record().reason, HasSubstr("gave token " + std::to_string(none)));
        b.policy.sampled = gives;
        ASSERT_TRUE(b.sample());
        EXPECT_THAT(b.samples.tokens, ElementsAre(none)) << "what to do with it is the commit's to say";
    }
}

TEST(SamplerPort, DuringProbationBothMustAcceptARequest) {
    Bench b;
    const auto refuses = [](const pb_sampling_params&) { throw Error(PB_UNSUPPORTED, "not that"); };
    EXPECT_TRUE(b.port.accepts(b.params));
    b.put_on_probation();
    EXPECT_TRUE(b.port.accepts(b.params));
    b.policy.accepted = refuses;
    EXPECT_FALSE(b.port.accepts(b.params)) << "it may have to take its place again";
}

TEST(SamplerPort, OneOnADeviceSamplesInThePassAndSeesNoLogits) {
    Bench b;
    SamplingParams p;
    p.logits_statistics = true;
    EXPECT_FALSE(b.port.samples_in_pass());
    EXPECT_TRUE(b.port.serves(p));
    SamplerPort there(kVocab, b.clock, b.context, b.journal);
    install<DeviceSampler>(there.slot(), kDeviceSampler);
    EXPECT_TRUE(there.samples_in_pass());
    EXPECT_THAT(there.serves(p).error(), HasSubstr("leaves the logits on the device"));
    EXPECT_TRUE(there.serves({}));
}

}  // namespace
}  // namespace patchbay::engine::testing::sampler_port_test
