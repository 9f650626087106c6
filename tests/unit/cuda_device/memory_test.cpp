// Memory of a GPU and of pages: zeroed, copied in the order of the stream, refused where there is none.
#include "memory.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "device_case.hpp"

namespace patchbay::memory_test {
namespace {

using testing::HasSubstr;

class MemoryTest : public DeviceCase {
  protected:
    Gpu gpu_{0, false};
    Staging staging_{gpu_.stream()};
    DeviceMemory memory_{gpu_, staging_};
};

TEST_F(MemoryTest, IsZeroedOnceItIsThere) {
    auto* const bytes = static_cast<uint8_t*>(memory_.alloc(100));
    EXPECT_TRUE(std::all_of(bytes, bytes + 100, [](uint8_t byte) { return byte == 0; }));
    memory_.free(bytes);
    memory_.free(nullptr);
    gpu_.wait();
}

TEST_F(MemoryTest, WhatWasCopiedComesBack) {
    std::vector<uint8_t> there(3 << 20), back(there.size()); // more than a slot of pinned memory
    for (size_t i = 0; i < there.size(); ++i) there[i] = static_cast<uint8_t>(i * 7);
    void* const memory = memory_.alloc(there.size());
    const std::vector<uint8_t> expected = there;
    memory_.to_device(memory, there.data(), there.size());
    std::fill(there.begin(), there.end(), uint8_t{0}); // the source may change at once
    memory_.to_host(back.data(), memory, back.size());
    EXPECT_EQ(back, expected);
    memory_.free(memory);
    gpu_.wait();
}

TEST_F(MemoryTest, PagesGoOutAndInInOrder) {
    auto* const pages = static_cast<int*>(memory_.alloc(2 * sizeof(int)));
    auto* const outside = static_cast<int*>(memory_.host_alloc(sizeof(int)));
    *outside = 5;
    memory_.page_to_device(&pages[0], outside, sizeof(int));
    memory_.copy_page(&pages[1], &pages[0], sizeof(int));
    fake_.start(gpu_.stream(), [pages] { pages[1] += 1; });
    memory_.page_to_host(outside, &pages[1], sizeof(int));
    gpu_.wait();
    EXPECT_EQ(*outside, 6);
    memory_.host_free(outside);
    memory_.free(pages);
    gpu_.wait();
}

TEST_F(MemoryTest, WaitsForWhatIsGivenBackWhereItIsNeeded) {
    fake_.capacity = 1000;
    void* const first = memory_.alloc(800);
    memory_.free(first); // in the order of the stream, which has not come to it
    void* const second = memory_.alloc(800);
    memory_.free(second);
    gpu_.wait();
}

TEST_F(MemoryTest, MoreThanThereIsIsRefused) {
    fake_.capacity = 1000;
    EXPECT_THAT(refusal([&] { memory_.alloc(2000); }).text, HasSubstr("cannot allocate 2000 bytes"));
}

}  // namespace
}  // namespace patchbay::memory_test
