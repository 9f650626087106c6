// Weights: what of them is in the GPU's memory, and that none of it is left.
#include "weights.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "device_case.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::weights_test {
namespace {

using fake::FakeGpu;
using testing::ElementsAre;
using testing::HasSubstr;

class WeightsTest : public DeviceCase, public testing::WithParamInterface<FakeGpu::Pace> {
  protected:
    WeightsTest() {
        fake_.pace = GetParam();
        gpu_.wait();
    }

    static pb_weight_source matrix(const std::vector<float>& values, int64_t rows) {
        pb_weight_source out = sized<pb_weight_source>();
        out.role = PB_WEIGHT_LINEAR;
        out.dtype = PB_F32;
        out.rows = rows;
        out.cols = static_cast<int64_t>(values.size()) / rows;
        out.data = values.data();
        return out;
    }
    std::vector<float> read(const void* at, size_t count) { // of the GPU's memory
        std::vector<float> out(count);
        staging_.download(out.data(), at, count * sizeof(float));
        return out;
    }

    Gpu gpu_{0, false};
    Staging staging_{gpu_.stream()};
    ExpertTables experts_{gpu_, staging_};
    Weights weights_{gpu_, staging_, experts_, PB_F32};
};

TEST_P(WeightsTest, AMatrixAndItsBiasAreThereAsTheyAre) {
    const std::vector<float> values{1, 2, 3, 4, 5, 6}, bias{7, 8};
    pb_weight_source source = matrix(values, 2);
    source.bias = bias.data();
    pb_weight* const w = weights_.prepare(source);
    EXPECT_EQ(w->bytes, 8 * sizeof(float));
    EXPECT_EQ(fake_.bytes(), w->bytes);
    EXPECT_THAT(read(w->matrix.data, 6), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(read(w->matrix.bias, 2), ElementsAre(7, 8));
    EXPECT_EQ(shape_of(w).rows, 2);
    EXPECT_EQ(shape_of(w).cols, 3);
    weights_.release(w);
    gpu_.wait();
    EXPECT_EQ(fake_.bytes(), 0u);
}

TEST_P(WeightsTest, AVectorOfBf16IsWidened) {
    const std::vector<uint16_t> halves{f32_to_bf16(0.5f), f32_to_bf16(-2)};
    pb_weight_source source = sized<pb_weight_source>();
    source.role = PB_WEIGHT_VECTOR;
    source.dtype = PB_BF16;
    source.rows = 1;
    source.cols = 2;
    source.data = halves.data();
    pb_weight* const w = weights_.prepare(source);
    EXPECT_THAT(read(w->vector, 2), ElementsAre(0.5f, -2));
    EXPECT_EQ(shape_of(w).cols, 2);
    weights_.release(w);
}

TEST_P(WeightsTest, OfCodesOnlyTheNumbersStay) {
    std::vector<int8_t> codes(2 * 20, 1);
    codes[19] = -3; // in the second group of its row
    const std::vector<float> scales{1, 2, 3, 4};
    pb_quant quant = sized<pb_quant>();
    quant.group = 16;
    quant.scales = scales.data();
    pb_weight_source source = sized<pb_weight_source>();
    source.role = PB_WEIGHT_LINEAR;
    source.dtype = PB_I8;
    source.rows = 2;
    source.cols = 20;
    source.data = codes.data();
    source.quant = &quant;
    pb_weight* const w = weights_.prepare(source);
    gpu_.wait();
    EXPECT_EQ(w->bytes, 40 * sizeof(float));
    EXPECT_EQ(fake_.bytes(), w->bytes) << "codes and scales are given back";
    const std::vector<float> numbers = read(w->matrix.data, 40);
    EXPECT_EQ(numbers[0], 1);
    EXPECT_EQ(numbers[19], -6);
    EXPECT_EQ(numbers[20], 3);
    EXPECT_EQ(numbers[39], 4);
    weights_.release(w);
}

TEST_P(WeightsTest, OneThatDoesNotFitLeavesNothing) {
    const std::vector<float> values(200, 1), bias(100, 1);
    fake_.capacity = 200 * sizeof(float); // room for the matrix, none for its bias
    pb_weight_source source = matrix(values, 100);
    source.bias = bias.data();
    EXPECT_THAT(refusal([&] { weights_.prepare(source); }).text, HasSubstr("out of memory"));
    gpu_.wait();
    EXPECT_EQ(fake_.bytes(), 0u);
}

TEST_P(WeightsTest, AnExpertsTablesGoWithIt) {
    const std::vector<float> values{1, 2};
    pb_weight* const one = weights_.prepare(matrix(values, 1));
    pb_weight* const two = weights_.prepare(matrix(values, 1));
    const pb_weight* const experts[] = {one, two};
    experts_.table(experts, 2);
    weights_.release(one);
    gpu_.wait();
    EXPECT_EQ(fake_.bytes(), two->bytes);
    weights_.release(two);
}

TEST_P(WeightsTest, LargeOnesGoThroughAllOfTheStagingMemory) {
    std::vector<float> values(size_t{10} << 20); // 40 MiB by 16 slots of 1 MiB
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 65537);
    pb_weight* const w = weights_.prepare(matrix(values, 1024));
    EXPECT_EQ(read(w->matrix.data, values.size()), values);
    weights_.release(w);
}

INSTANTIATE_TEST_SUITE_P(Work, WeightsTest, testing::Values(FakeGpu::Pace::kEarly, FakeGpu::Pace::kLate),
                         [](const auto& pace) { return pace.param == FakeGpu::Pace::kEarly ? "early" : "late"; });

}  // namespace
}  // namespace patchbay::weights_test
