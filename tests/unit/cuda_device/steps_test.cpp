// Steps in flight: each brings its own copies and its own fault.
#include "steps.hpp"

#include <gmock/gmock.h>

#include "device_case.hpp"
#include "kernels/cuda.hpp"

namespace patchbay::steps_test {
namespace {

using fake::FakeGpu;
using kernels::cuda::KernelFault;
using testing::HasSubstr;

class StepsTest : public DeviceCase, public testing::WithParamInterface<FakeGpu::Pace> {
  protected:
    StepsTest() { fake_.pace = GetParam(); }

    void kernel_finds(KernelFault fault) {
        fake_.start(gpu_.stream(), [this, fault] { *steps_.kernel_fault() = static_cast<int32_t>(fault); });
    }
    // A step that makes the GPU's number `value` and copies it to `to` when it is over.
    void submit(int value, int& to) {
        steps_.begin_step();
        fake_.start(gpu_.stream(), [this, value] { *number() = value; });
        steps_.to_host_async(&to, number(), sizeof to);
        steps_.submit_step();
    }
    int* number() { return static_cast<int*>(number_.data()); }

    Gpu gpu_{0, false};
    RankConnection connection_{gpu_};
    GpuMemory number_{gpu_, sizeof(int)};
    Steps steps_{gpu_, connection_};
};

TEST_P(StepsTest, CopiesComeWithTheirOwnStep) {
    int first = 0, second = 0;
    submit(1, first);
    submit(2, second);
    EXPECT_EQ(first, 0);
    steps_.wait_step();
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 0) << "though its work may be done";
    steps_.wait_step();
    EXPECT_EQ(second, 2);
}

TEST_P(StepsTest, PinnedMemoryIsUsedAgain) {
    int to = 0;
    for (int i = 0; i < 20; ++i) {
        submit(i, to);
        steps_.wait_step();
        EXPECT_EQ(to, i);
    }
    EXPECT_EQ(fake_.pinned.size(), 2u) << "one for the number, one for what kernels found";
}

TEST_P(StepsTest, AKernelsFaultIsThatOfItsStep) {
    int first = 0, second = 0;
    kernel_finds(KernelFault::kEmbeddingId);
    submit(1, first);
    submit(2, second);
    const Refusal r = refusal([&] { steps_.wait_step(); });
    EXPECT_EQ(r.status, PB_INVALID);
    EXPECT_EQ(r.text, "embedding: an id is outside the table");
    steps_.wait_step();
    EXPECT_EQ(second, 2);
}

TEST_P(StepsTest, AFaultOfTheHostIsThatOfItsStep) {
    steps_.begin_step();
    steps_.set_fault("linear: x has 3 columns");
    EXPECT_TRUE(steps_.faulty());
    EXPECT_EQ(refusal([&] { steps_.end_step(); }).text, "linear: x has 3 columns");
    steps_.begin_step();
    EXPECT_FALSE(steps_.faulty());
    steps_.end_step();
}

TEST_P(StepsTest, AKernelOfAnotherPluginThatDoesNotStartIsNoticedBeforeTheNextOp) {
    steps_.begin_step();
    fake_.fail_to_start(cudaErrorIllegalAddress);
    steps_.before_op("linear");
    EXPECT_THAT(steps_.fault(), HasSubstr("another plugin's kernel, before linear: an illegal memory access"));
    EXPECT_THROW(steps_.end_step(), Error);
    steps_.begin_step();
    fake_.fail_to_start(cudaErrorInvalidValue);
    EXPECT_THAT(refusal([&] { steps_.end_step(); }).text, HasSubstr("before the step's end: invalid argument"));
}

TEST_P(StepsTest, AnOpsOwnKernelIsNamed) {
    steps_.begin_step();
    fake_.fail_to_start(cudaErrorInvalidValue);
    steps_.after_op("rope");
    EXPECT_EQ(refusal([&] { steps_.end_step(); }).text, "rope: invalid argument");
}

TEST_P(StepsTest, AnOpThatBrokeTheGpuIsNamedThoughTheStepsEndFailsToo) {
    int to = 7;
    for (cudaError_t* const fails : {&fake_.events, &fake_.records}) {
        steps_.begin_step();
        steps_.to_host_async(&to, number(), sizeof to);
        steps_.set_fault("rope: an illegal memory access");
        *fails = cudaErrorIllegalAddress;
        const Refusal r = refusal([&] { steps_.end_step(); });
        EXPECT_EQ(r.status, PB_INVALID);
        EXPECT_EQ(r.text, "rope: an illegal memory access");
        *fails = cudaSuccess;
    }
    EXPECT_EQ(to, 7);
    EXPECT_EQ(refusal([&] { steps_.wait_step(); }).text, "no step is in flight");
}

TEST_P(StepsTest, OfAGpuThatStoppedNothingIsCopied) {
    int to = 7;
    submit(1, to);
    fake_.work = cudaErrorIllegalAddress;
    const Refusal r = refusal([&] { steps_.wait_step(); });
    EXPECT_EQ(r.status, PB_FAILED);
    EXPECT_THAT(r.text, HasSubstr("the GPU stopped in this step or before it (check_each_op names the op)"));
    EXPECT_EQ(to, 7);
    EXPECT_THROW(steps_.end_step(), Error) << "it stays so";
    fake_.work = cudaSuccess; // for the destructors
}

TEST_P(StepsTest, OneWhoseEndCannotBeMarkedIsNotInFlight) {
    int to = 7;
    fake_.events = cudaErrorMemoryAllocation;
    EXPECT_THAT(refusal([&] { submit(1, to); }).text, HasSubstr("an event: out of memory"));
    fake_.events = cudaSuccess;
    fake_.records = cudaErrorIllegalAddress;
    EXPECT_THAT(refusal([&] { submit(1, to); }).text, HasSubstr("the end of a step: an illegal memory access"));
    fake_.records = cudaSuccess;
    EXPECT_EQ(refusal([&] { steps_.wait_step(); }).status, PB_INVALID);
    EXPECT_EQ(to, 7);
    submit(2, to);
    steps_.wait_step();
    EXPECT_EQ(to, 2);
}

TEST_P(StepsTest, WhatAGivenUpStepWouldHaveCopiedIsDropped) {
    int given_up = 7;
    steps_.begin_step();
    steps_.to_host_async(&given_up, number(), sizeof given_up);
    steps_.begin_step();
    steps_.end_step();
    EXPECT_EQ(given_up, 7);
}

TEST_P(StepsTest, AStepMayEndBeforeThoseInFlightAreWaitedFor) {
    int first = 0, second = 0;
    submit(1, first);
    steps_.begin_step();
    fake_.start(gpu_.stream(), [this] { *number() = 2; });
    steps_.to_host_async(&second, number(), sizeof second);
    steps_.end_step();
    EXPECT_EQ(second, 2);
    EXPECT_EQ(first, 0);
    steps_.wait_step();
    EXPECT_EQ(first, 1);
}

TEST_P(StepsTest, WithoutAStepInFlightThereIsNothingToWaitFor) {
    EXPECT_EQ(refusal([&] { steps_.wait_step(); }).status, PB_INVALID);
}

TEST_P(StepsTest, ThoseLeftInFlightAreGivenBack) { // by the destructor, and counted by the fixture
    int to = 0;
    submit(1, to);
    submit(2, to);
    gpu_.wait();
}

TEST_P(StepsTest, WithoutNcclThereAreNoRanks) {
    const pb_group group = sized<pb_group>();
    EXPECT_EQ(refusal([&] { connection_.connect(group); }).status, PB_UNSUPPORTED);
    connection_.disconnect();
    EXPECT_FALSE(connection_.is_lost());
    EXPECT_EQ(connection_.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Work, StepsTest, testing::Values(FakeGpu::Pace::kEarly, FakeGpu::Pace::kLate),
                         [](const auto& pace) { return pace.param == FakeGpu::Pace::kEarly ? "early" : "late"; });

}  // namespace
}  // namespace patchbay::steps_test
