// Counted memory, and the weights in it.
#include "memory.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "patchbay/sdk/weight_checks.hpp"
#include "weights.hpp"

namespace patchbay::memory_test {
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

std::string refusal(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

// Each as a device that computes refuses it: a simulation must not run what no other device takes.
TEST_F(WeightsTest, RefusesWhatOtherDevicesRefuse) {
    const auto groups = [](uint32_t columns) { return pb_quant{sizeof(pb_quant), columns, nullptr, nullptr, nullptr}; };
    const auto refused = [&](const pb_weight_source& wrong) {
        const double number = 0;
        pb_weight_source with_data = wrong;
        with_data.data = &number;
        const std::string why = refusal([&] { weights_.prepare(wrong); });
        EXPECT_EQ(why, refusal([&] { check_weight(with_data); }));
        return why;
    };
    const pb_quant usual = groups(32), none = groups(0), odd = groups(24);
    const float offset = 0;
    pb_quant shifted = usual;
    shifted.offsets = &offset;
    pb_weight_source vector = source(1, 32, PB_I8, &usual);
    vector.role = PB_WEIGHT_VECTOR;
    EXPECT_EQ(refused(source(0, 20, PB_BF16)), "weight: shape (0, 20)");
    EXPECT_NE(refused(source(int64_t{1} << 30, int64_t{1} << 30, PB_BF16)), "");
    EXPECT_EQ(refused(source(10, 20, PB_I8)), "weight: codes of i8 without scales");
    EXPECT_NE(refused(source(10, 20, PB_F16)), "");
    EXPECT_NE(refused(source(10, 20, PB_BF16, &usual)), "") << "numbers with scales";
    EXPECT_EQ(refused(source(10, 20, PB_I8, &none)), "weight: groups of 0, expected 16, 32, 64 or 128");
    EXPECT_EQ(refused(source(10, 20, PB_I8, &odd)), "weight: groups of 24, expected 16, 32, 64 or 128");
    EXPECT_NE(refused(source(1, 32, PB_FP8, &shifted)), "");
    EXPECT_NE(refused(vector), "");
    EXPECT_EQ(memory_.free_bytes(), 1000u);
}

}  // namespace
}  // namespace patchbay::memory_test
