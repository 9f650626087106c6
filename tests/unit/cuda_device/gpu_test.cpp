// Which GPUs are taken, and memory in the order of a stream.
#include <gmock/gmock.h>

#include "device_case.hpp"

namespace patchbay::gpu_test {
namespace {

using testing::HasSubstr;

class GpuTest : public DeviceCase {
  protected:
    static Refusal opened(int index = 0) {
        return refusal([&] { const Gpu gpu(index, false); });
    }
};

TEST_F(GpuTest, AMachineWithoutOneIsUnavailable) {
    fake_.count = 0;
    const Refusal r = opened();
    EXPECT_EQ(r.status, PB_UNAVAILABLE);
    EXPECT_THAT(r.text, HasSubstr("no CUDA-capable device is detected"));
}

TEST_F(GpuTest, AnIndexThatIsNotThereIsInvalid) {
    EXPECT_EQ(opened(1).status, PB_INVALID);
    EXPECT_THAT(opened(1).text, HasSubstr("index 1: 1 GPUs are visible"));
}

TEST_F(GpuTest, AnOldOneIsUnavailable) {
    fake_.major = 7;
    EXPECT_EQ(opened().status, PB_UNAVAILABLE);
    EXPECT_THAT(opened().text, HasSubstr("Fake GPU (sm_70), expected sm_80 or later"));
}

TEST_F(GpuTest, OneThatThisBuildHasNoCodeForIsUnavailable) {
    fake_.kernels = cudaErrorNoKernelImageForDevice;
    EXPECT_EQ(opened().status, PB_UNAVAILABLE);
    EXPECT_THAT(opened().text, HasSubstr("kernels do not run on Fake GPU (sm_90): no kernel image is available"));
}

TEST_F(GpuTest, MemoryIsGivenBackWhenTheWorkBeforeIsDone) {
    Gpu gpu(0, false);
    gpu.wait();
    EXPECT_EQ(fake_.bytes(), 0u) << "the kernel that was tried";
    {
        const GpuMemory memory(gpu, 100);
        EXPECT_EQ(fake_.bytes(), 100u);
        fake_.start(gpu.stream(), [at = memory.data()] { *static_cast<char*>(at) = 1; }); // may still come
    }
    EXPECT_EQ(fake_.bytes(), 100u);
    gpu.wait();
    EXPECT_EQ(fake_.bytes(), 0u);
}

TEST_F(GpuTest, MoreMemoryThanThereIsIsRefused) {
    fake_.capacity = 1000;
    Gpu gpu(0, false);
    const Refusal r = refusal([&] { gpu.take(2000); });
    EXPECT_EQ(r.status, PB_FAILED);
    EXPECT_THAT(r.text, HasSubstr("cannot allocate 2000 bytes of the GPU's memory: out of memory"));
    EXPECT_EQ(gpu.latest_error(), cudaSuccess);
}

TEST_F(GpuTest, WhatThePoolKeepsIsFree) {
    Gpu gpu(0, false);
    gpu.wait();
    const GpuMemory some(gpu, uint64_t{8} << 20);
    const Gpu::Memory m = gpu.memory();
    EXPECT_EQ(m.total, fake_.capacity);
    EXPECT_EQ(m.free, fake_.capacity - (uint64_t{7} << 20));
}

TEST_F(GpuTest, WhatIsGivenBackWhileAStepIsCapturedIsNoPartOfItsGraph) {
    Gpu gpu(0, false);
    gpu.wait();
    gpu.begin_capture();
    { const GpuMemory memory(gpu, 100); }
    cudaGraph_t recorded = nullptr;
    EXPECT_EQ(gpu.end_capture(recorded), cudaSuccess);
    gpu.wait();
    EXPECT_EQ(fake_.bytes(), 0u);
    cudaGraphDestroy(recorded);
}

TEST_F(GpuTest, ThreadsThatUsedAnotherGpuMayGiveBackMemory) {
    fake_.count = 2;
    Gpu gpu(1, false);
    void* const memory = gpu.take(10);
    cudaSetDevice(0);
    gpu.give_back(memory);
    cudaSetDevice(0);
    gpu.use();
    gpu.give_back(gpu.take(10));
    gpu.wait();
    EXPECT_EQ(fake_.bytes(), 0u);
}

TEST_F(GpuTest, NothingIsWaitedForWhileAStepIsCaptured) {
    Gpu gpu(0, true);
    gpu.begin_capture();
    EXPECT_EQ(gpu.latest_error(), cudaSuccess);
    cudaGraph_t recorded = nullptr;
    EXPECT_EQ(gpu.end_capture(recorded), cudaSuccess);
    cudaGraphDestroy(recorded);
}

TEST_F(GpuTest, ChecksEachOpOnlyWithCheckEachOp) {
    for (const bool checks : {false, true}) {
        const Gpu gpu(0, checks);
        gpu.wait();
        fake_.work = cudaErrorIllegalAddress;
        EXPECT_EQ(gpu.latest_error(), checks ? cudaErrorIllegalAddress : cudaSuccess);
        fake_.work = cudaSuccess;
        cudaGetLastError();
    }
}

}  // namespace
}  // namespace patchbay::gpu_test
