// Rows that a sampler samples where their logits are.
#include "runner/device_sampling.hpp"

#include <gmock/gmock.h>

#include "fake_device.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::runner::device_sampling_test {
namespace {

using testing::PlayedDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The likeliest token of each row; at an odd position with a fault. Its logprobs are the logits.
struct Greedy {
    static constexpr const char* kDevice = "fake";
    std::vector<uint64_t> positions; // what it needs of the rows, on the device
    bool fails = false;

    pb_sample_plan plan(SampleBatch& batch) {
        if (fails) throw Error(PB_FAILED, "it does not want to");
        positions.clear();
        for (uint32_t i = 0; i < batch.size(); ++i) positions.push_back(batch.row(i).position);
        return {sizeof(pb_sample_plan), 0, positions.data(), positions.size() * sizeof(uint64_t), 0};
    }
    void enqueue(const pb_sample_work& work) {
        const auto* const at = static_cast<const uint64_t*>(work.inputs);
        const auto* const logits = static_cast<const float*>(work.logits.data);
        const int64_t vocab = work.logits.shape[1];
        for (uint32_t r = 0; r < work.row_count; ++r) {
            const float* const row = logits + r * vocab;
            work.tokens[r] = static_cast<int32_t>(std::max_element(row, row + vocab) - row);
            work.faults[r] = at[r] % 2 == 1;
            work.logprobs[r] = row[work.tokens[r]];
            for (uint32_t k = 0; k < work.max_logprobs; ++k) {
                work.top_tokens[r * work.max_logprobs + k] = static_cast<int32_t>(k);
                work.top_logprobs[r * work.max_logprobs + k] = row[k];
            }
        }
    }
    void accepts(const pb_sampling_params&) const {}
};
constexpr pb_component kGreedy = sampler<Greedy>({"greedy", "1.0.0", "plays"});

struct OnHost {
    void sample(SampleBatch&) {}
    void accepts(const pb_sampling_params&) const {}
};
constexpr pb_component kOnHost = sampler<OnHost>({"host", "1.0.0", "plays"});

struct Elsewhere : Greedy {
    static constexpr const char* kDevice = "another";
};
constexpr pb_component kElsewhere = sampler<Elsewhere>({"elsewhere", "1.0.0", "plays"});

std::unique_ptr<host::Component> make(const pb_component& type) {
    return *host::Component::create(nullptr, type, {}, {});
}

struct Bench {
    // Of rows whose likeliest tokens are these, at position 0, 2, 4, …
    Result<> enqueue(const std::vector<uint32_t>& likeliest, int32_t logprobs = 0, uint64_t first_position = 0) {
        logits.assign(likeliest.size() * kVocab, 0);
        rows.assign(likeliest.size(), {});
        params.struct_size = sizeof params;
        params.logprobs = logprobs;
        for (size_t r = 0; r < likeliest.size(); ++r) {
            logits[r * kVocab + likeliest[r]] = 1;
            rows[r].position = first_position + 2 * r;
            rows[r].params = &params;
        }
        pb_sample_batch batch{};
        batch.struct_size = sizeof batch;
        batch.row_count = static_cast<uint32_t>(rows.size());
        batch.row_stride = sizeof(pb_sample_row);
        batch.max_logprobs = logprobs > 1 ? static_cast<uint32_t>(logprobs) - 1 : 0;
        batch.rows = rows.data();
        // More rows than are sampled, as of a padded batch.
        logits.resize(logits.size() + 3 * kVocab);
        return part.enqueue({*greedy, batch}, tensor(logits.data(), PB_F32,
                                                     {static_cast<int64_t>(likeliest.size()) + 3, kVocab}, 1));
    }
    static constexpr int64_t kVocab = 6;
    PlayedDevice device;
    std::unique_ptr<host::Component> greedy = make(kGreedy);
    DeviceSampling part{device.opened.plugin};
    std::vector<float> logits;
    std::vector<pb_sample_row> rows;
    pb_sampling_params params{};
};

TEST(DeviceSampling, RowsOfTwoStepsAreCollectedInTheirOrder) {
    Bench b;
    ASSERT_TRUE(b.part.reserve(4, 0));
    ASSERT_TRUE(b.enqueue({3, 1}));
    ASSERT_TRUE(b.enqueue({5, 0, 2, 4}));
    const auto first = b.part.collect();
    ASSERT_TRUE(first) << first.error();
    EXPECT_THAT(first->tokens, ElementsAre(3, 1));
    EXPECT_THAT(first->logprobs, IsEmpty()) << "no row asks for them";
    const auto second = b.part.collect();
    EXPECT_THAT(second->tokens, ElementsAre(5, 0, 2, 4));
    EXPECT_THAT(first->tokens, ElementsAre(3, 1)) << "valid until the second step from there";
}

TEST(DeviceSampling, TheNewestTokensAreOnTheDeviceForTheNextStep) {
    Bench b;
    ASSERT_TRUE(b.enqueue({3, 1}));
    const pb_tensor there = b.part.newest_tokens();
    EXPECT_EQ(there.shape[0], 2);
    const auto* const tokens = static_cast<const int32_t*>(there.data);
    EXPECT_THAT(std::vector<int32_t>(tokens, tokens + 2), ElementsAre(3, 1));
}

TEST(DeviceSampling, LogprobsComeWhereARowAsksForThem) {
    Bench b;
    ASSERT_TRUE(b.enqueue({3, 1}, 3));
    const auto out = b.part.collect();
    ASSERT_TRUE(out) << out.error();
    EXPECT_THAT(out->logprobs, ElementsAre(1, 1));
    EXPECT_EQ(out->max_logprobs, 2u);
    EXPECT_THAT(out->top_tokens, ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(out->top_logprobs, ElementsAre(0, 0, 0, 1));
}

TEST(DeviceSampling, FaultsOfRowsAreCounted) {
    Bench b;
    ASSERT_TRUE(b.enqueue({3, 1, 2}, 0, 1)); // odd positions
    EXPECT_EQ(b.part.collect()->faults, 3u);
    ASSERT_TRUE(b.enqueue({3, 1, 2}));
    EXPECT_EQ(b.part.collect()->faults, 0u);
}

TEST(DeviceSampling, WhatIsForgottenIsNotCollected) {
    Bench b;
    ASSERT_TRUE(b.enqueue({3}));
    b.part.forget();
    ASSERT_TRUE(b.enqueue({5, 4}));
    EXPECT_THAT(b.part.collect()->tokens, ElementsAre(5, 4));
}

TEST(DeviceSampling, ASamplerThatFailsIsTheFailure) {
    Bench b;
    static_cast<detail::Box<Greedy>*>(b.greedy->self())->value.fails = true;
    EXPECT_THAT(b.enqueue({3}).error(), HasSubstr("it does not want to"));
}

TEST(DeviceSampling, ASamplerRunsOnTheHostOrOnItsDevice) {
    const pb_device_info info = sized<pb_device_info>();
    const auto greedy = make(kGreedy), host = make(kOnHost), elsewhere = make(kElsewhere);
    EXPECT_TRUE(runs_on_device(*greedy));
    EXPECT_FALSE(runs_on_device(*host));
    EXPECT_TRUE(check_sampler(*greedy, "fake", info));
    EXPECT_TRUE(check_sampler(*host, "fake", info)) << "beside any";
    EXPECT_THAT(check_sampler(*elsewhere, "fake", info).error(),
                HasSubstr("runs on device 'another', and the model on 'fake'"));
}

}  // namespace
}  // namespace patchbay::runner::device_sampling_test
