// Counted memory, and the weights in it.
#include "memory.hpp"

#include <gmock/gmock.h>

#include "weights.hpp"

namespace patchbay {
namespace {

using testing::HasSubstr;

TEST(CountedMemory, CountsWhatIsAllocated) {
    CountedMemory memory("test", 100);
    void* const first = memory.alloc(60);
    void* const second = memory.alloc(40);
    EXPECT_NE(first, second);
    EXPECT_EQ(memory.free_bytes(), 0u);
    memory.free(first);
    memory.free(nullptr);
    EXPECT_EQ(memory.free_bytes(), 60u);
    memory.free(second);
    EXPECT_EQ(memory.free_bytes(), memory.total_bytes());
}

TEST(CountedMemory, RefusesMoreThanIsFreeAndSaysWhatFor) {
    CountedMemory memory("test", 100);
    memory.take(70, "a graph");
    try {
        memory.take(31, "a weight");
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("a weight of 31 bytes"));
        EXPECT_THAT(error.what(), HasSubstr("of the 100 bytes of the simulated test only 30 are free"));
    }
    EXPECT_EQ(memory.free_bytes(), 30u);
}

TEST(CountedMemory, ReadsAsZeros) {
    const CountedMemory memory("test", 100);
    int number = 7;
    memory.to_host(&number, nullptr, sizeof number);
    EXPECT_EQ(number, 0);
}

class WeightsTest : public testing::Test {
  protected:
    static pb_weight_source source(int64_t rows, int64_t cols, pb_dtype dtype, const pb_quant* quant = nullptr) {
        return {sizeof(pb_weight_source), PB_WEIGHT_LINEAR, dtype, 0, rows, cols, nullptr, nullptr, 0, quant};
    }

    const Hardware hardware_{.name = "test", .bf16_per_ns = 2, .f32_per_ns = 1};
    CountedMemory memory_{"test", 1000};
    Weights weights_{hardware_, memory_};
};

TEST_F(WeightsTest, TakesMemoryUntilReleased) {
    pb_weight* const w = weights_.prepare(source(10, 20, PB_BF16));
    EXPECT_EQ(weights_.weight_bytes(w), 400u);
    EXPECT_EQ(memory_.free_bytes(), 600u);
    EXPECT_EQ(w->flop_per_ns, 2);
    EXPECT_EQ(shape_of(w).uses, 1u << PB_WEIGHT_LINEAR);
    weights_.release(w);
    EXPECT_EQ(memory_.free_bytes(), 1000u);
}

TEST_F(WeightsTest, RefusesShapesAndDtypesThatItCannotCount) {
    const pb_quant quant{sizeof quant, 32, nullptr, nullptr, nullptr}, groupless{sizeof quant, 0, nullptr, nullptr,
                                                                                 nullptr};
    EXPECT_THROW(weights_.prepare(source(0, 20, PB_BF16)), Error);
    EXPECT_THROW(weights_.prepare(source(int64_t{1} << 30, int64_t{1} << 30, PB_BF16)), Error);
    EXPECT_THROW(weights_.prepare(source(10, 20, PB_I8)), Error) << "codes without scales";
    EXPECT_THROW(weights_.prepare(source(10, 20, PB_BF16, &quant)), Error) << "numbers with scales";
    EXPECT_THROW(weights_.prepare(source(10, 20, PB_I8, &groupless)), Error);
    EXPECT_EQ(memory_.free_bytes(), 1000u);
}

}  // namespace
}  // namespace patchbay
