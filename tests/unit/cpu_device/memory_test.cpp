// Memory of the host as a device's, and weights in it.
#include "memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bare_host.hpp"
#include "machine.hpp"
#include "patchbay/plugin.hpp"
#include "weights.hpp"

namespace patchbay::memory_test {
namespace {

TEST(CpuMemory, IsZeroedAndAligned) {
    const CpuMemory memory;
    for (const uint64_t bytes : {0u, 1u, 100u, 5u << 20}) {
        auto* const block = static_cast<uint8_t*>(memory.alloc(bytes));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
        EXPECT_TRUE(std::all_of(block, block + bytes, [](uint8_t byte) { return byte == 0; }));
        memory.free(block);
    }
    memory.free(nullptr);
}

TEST(CpuMemory, RefusesWhatTheHostCannotHave) {
    EXPECT_THROW(CpuMemory().alloc(UINT64_MAX), Error);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // whose allocators end the process
    EXPECT_THROW(CpuMemory().alloc(UINT64_MAX / 2), Error);
#endif
}

class WeightsTest : public testing::Test {
  protected:
    pb_weight* prepare(pb_weight_role role, uint64_t uses, const std::vector<float>& values, int64_t rows) {
        return weights_.prepare({sizeof(pb_weight_source), role, PB_F32, 0, rows,
                                 static_cast<int64_t>(values.size()) / rows, values.data(), nullptr, uses, nullptr});
    }

    const pb_host host_ = bare_host();
    const CpuMachine machine_{kernels::Isa::Plain, host_};
    const Weights weights_{machine_.kernels()};
};

TEST_F(WeightsTest, AMatrixForTwoUsesIsPackedOnce) {
    pb_weight* const once = prepare(PB_WEIGHT_LINEAR, 0, {1, 2, 3, 4, 5, 6}, 2);
    pb_weight* const twice = prepare(PB_WEIGHT_LINEAR, 1u << PB_WEIGHT_EMBEDDING, {1, 2, 3, 4, 5, 6}, 2);
    EXPECT_EQ(weights_.bytes(once), weights_.bytes(twice));
    EXPECT_EQ(shape_of(twice).uses, 1u << PB_WEIGHT_LINEAR | 1u << PB_WEIGHT_EMBEDDING);
    float row[3] = {};
    twice->matrix->read_row(1, row);
    EXPECT_EQ(row[0], 4);
    EXPECT_EQ(row[2], 6);
    weights_.release(once);
    weights_.release(twice);
}

TEST_F(WeightsTest, AVectorIsKeptAsItIs) {
    pb_weight* const w = prepare(PB_WEIGHT_VECTOR, 0, {1, 2, 3}, 1);
    EXPECT_EQ(w->vector, (std::vector<float>{1, 2, 3}));
    EXPECT_FALSE(w->matrix);
    EXPECT_EQ(weights_.bytes(w), 12u);
    weights_.release(w);
}

}  // namespace
}  // namespace patchbay::memory_test
