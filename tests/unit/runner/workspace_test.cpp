// Memory of a step's temporary tensors.
#include "runner/workspace.hpp"

#include <gmock/gmock.h>

#include "fake_device.hpp"

namespace patchbay::runner::workspace_test {
namespace {

using testing::PlayedDevice;

constexpr uint64_t kMiB = 1u << 20;

struct Bench {
    std::vector<char*> take(const std::vector<uint64_t>& sizes) {
        std::vector<char*> out;
        for (const uint64_t bytes : sizes) out.push_back(static_cast<char*>(part->take(bytes)));
        return out;
    }
    PlayedDevice device;
    std::unique_ptr<Workspace> part = std::make_unique<Workspace>(device.opened.plugin);
};

TEST(Workspace, TensorsLieOneAfterTheOtherAligned) {
    Bench b;
    const std::vector<char*> at = b.take({1, 64, 65, 0, 8});
    EXPECT_EQ(at[1] - at[0], 64);
    EXPECT_EQ(at[2] - at[1], 64);
    EXPECT_EQ(at[3] - at[2], 128);
    EXPECT_EQ(at[4] - at[3], 64) << "one without a byte has an address of its own";
    EXPECT_EQ(b.device.fake.memories, 1u);
}

TEST(Workspace, TheSameStepGetsTheSameAddresses) {
    Bench b;
    const std::vector<uint64_t> step = {100, 5 * kMiB, 5 * kMiB, 20 * kMiB, 3 * kMiB, 1000};
    b.take(step); // in several memories, of which the next begins with one
    b.part->reset();
    const std::vector<char*> first = b.take(step);
    const uint32_t memories = b.device.fake.memories;
    b.part->reset();
    b.take({64, 64, 64}); // a smaller one between them
    b.part->reset();
    EXPECT_EQ(b.take(step), first);
    EXPECT_EQ(b.device.fake.memories, memories) << "no more memory";
}

TEST(Workspace, NoTwoTensorsOverlap) {
    Bench b;
    for (int round = 0; round < 3; ++round) {
        const std::vector<uint64_t> sizes = {3 * kMiB, 7 * kMiB, 64, 9 * kMiB, kMiB, 6 * kMiB, 100};
        const std::vector<char*> at = b.take(sizes);
        for (size_t i = 0; i < at.size(); ++i) {
            ASSERT_NE(at[i], nullptr);
            std::memset(at[i], static_cast<int>(i), sizes[i]); // it is all there
        }
        for (size_t i = 0; i < at.size(); ++i) {
            EXPECT_EQ(at[i][0], static_cast<char>(i));
            EXPECT_EQ(at[i][sizes[i] - 1], static_cast<char>(i));
        }
        b.part->reset();
    }
}

TEST(Workspace, ChunksAreFilledBeforeThereIsAnother) {
    Bench b;
    b.take({kMiB, kMiB, kMiB, 5 * kMiB});
    EXPECT_EQ(b.device.fake.memories, 1u) << "8 MiB";
    b.take({1});
    EXPECT_EQ(b.device.fake.memories, 2u);
    b.part.reset();
    EXPECT_EQ(b.device.fake.memories, 0u);
}

uint64_t grow_to(Bench& b, uint64_t rows) { // passes of 1 to so many rows, each with logits of 600 KB a row
    uint64_t step = 0;
    for (uint64_t n = 1; n <= rows; ++n) {
        b.part->reset();
        b.take({n * 600'000, n * 8192, n * 8192, n * 28'672});
        step = n * (600'000 + 8192 + 8192 + 28'672);
    }
    return step;
}

TEST(Workspace, PassesThatGrowTakeNotMuchMoreThanTheLargest) {
    Bench b;
    const uint64_t largest = grow_to(b, 128);
    b.part->reset();
    EXPECT_LT(b.device.fake.memory_bytes, 2 * largest);
    EXPECT_EQ(b.device.fake.memories, 1u);
}

TEST(Workspace, WhatGraphsHaveTheAddressesOfStaysAndGrowthIsBoundedAllTheSame) {
    Bench b;
    const std::vector<uint64_t> captured = {5 * kMiB, 5 * kMiB};
    b.take(captured);
    b.part->reset();
    const std::vector<char*> at = b.take(captured);
    b.part->hold();
    const uint64_t largest = grow_to(b, 128);
    EXPECT_LT(b.device.fake.memory_bytes, 5 * largest);
    b.part->reset();
    EXPECT_EQ(b.take(captured), at);
}

TEST(Workspace, WithoutMemoryThereIsNoTensorAndLaterThereIsAgain) {
    Bench b;
    const std::vector<char*> first = b.take({4 * kMiB});
    b.device.fake.is_full = true;
    EXPECT_EQ(b.part->take(5 * kMiB), nullptr);
    b.part->reset();
    EXPECT_EQ(b.take({4 * kMiB}), first) << "what is there can be used";
    b.device.fake.is_full = false;
    EXPECT_NE(b.part->take(5 * kMiB), nullptr);
}

}  // namespace
}  // namespace patchbay::runner::workspace_test
