// Panels of packed matrices: their sizes, where numbers lie in them, and rows out of them as they went in.
#include "cpu/panels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cpu/quantised_panels.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels::panels_test {
namespace {

constexpr int64_t kRows = 5, kCols = 3, kColumns = 4; // two panels, the second with one row of four

TEST(Panels, TakeWholeCacheLines) {
    const PanelLayout f32 = plain_panels(PB_F32, kRows, kCols, kColumns, 1);
    EXPECT_EQ(f32.panels(), 2);
    EXPECT_EQ(f32.padded_rows(), 8);
    EXPECT_EQ(f32.panel_bytes, 64u) << "of which it fills 4 · 3 · 4";
    EXPECT_EQ(f32.bytes(), 128u);
    EXPECT_EQ(plain_panels(PB_BF16, kRows, 33, kColumns, 2).panel_bytes, 320u) << "34 · 4 · 2, filled up";
    const PanelLayout fp8 = fp8_panels(kRows, 33, kColumns, 32, 16);
    EXPECT_EQ(fp8.scale_bytes, 4u * 4 * 4) << "scales for all of the padded K";
    EXPECT_EQ(fp8.panel_bytes, 320u) << "64 of scales and 64 · 4 of codes";
}

TEST(Panels, GiveRowsBack) {
    std::vector<float> numbers(kRows * kCols), row(kCols);
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    std::vector<uint16_t> rounded;
    for (const float x : numbers) rounded.push_back(f32_to_bf16(x));
    for (const pb_dtype dtype : {PB_F32, PB_BF16}) {
        const PanelLayout layout = plain_panels(dtype, kRows, kCols, kColumns, 2);
        std::vector<uint8_t> panel(layout.panel_bytes);
        const void* const data = dtype == PB_F32 ? static_cast<const void*>(numbers.data()) : rounded.data();
        for (int64_t r = 0; r < kRows; ++r) {
            std::fill(panel.begin(), panel.end(), uint8_t{0xff});
            pack_panel(layout, r / kColumns, data, panel.data());
            read_panel_row(layout, panel.data(), r % kColumns, row.data());
            for (int64_t k = 0; k < kCols; ++k) EXPECT_EQ(row[size_t(k)], numbers[size_t(r * kCols + k)]);
        }
        read_panel_row(layout, panel.data(), kColumns - 1, row.data());
        EXPECT_EQ(row, std::vector<float>(kCols)) << "columns past the last row are zeros";
    }
}

TEST(Panels, Bf16LiesInPairsOfK) {
    const std::vector<uint16_t> numbers = {1, 2, 3, 11, 12, 13}; // (2, 3)
    const PanelLayout layout = plain_panels(PB_BF16, 2, kCols, 2, 2);
    std::vector<uint16_t> panel(layout.panel_bytes / 2);
    pack_panel(layout, 0, numbers.data(), reinterpret_cast<uint8_t*>(panel.data()));
    panel.resize(8);
    EXPECT_EQ(panel, (std::vector<uint16_t>{1, 2, 11, 12, 3, 0, 13, 0}));
}

TEST(Panels, Fp8RowsAreCodesTimesTheScalesOfTheirGroups) {
    constexpr int64_t kWide = 20;
    constexpr uint8_t kOne = 0x38; // e4m3
    const std::vector<uint8_t> codes(kRows * kWide, kOne);
    std::vector<float> scales(kRows * 2), row(kWide);
    std::iota(scales.begin(), scales.end(), 1.0f);
    const QuantisedSource source{.dtype = PB_FP8, .rows = kRows, .cols = kWide, .codes = codes.data(), .group = 16,
                                 .scales = scales.data()};
    const PanelLayout layout = fp8_panels(kRows, kWide, kColumns, 1, 16);
    std::vector<uint8_t> panel(layout.panel_bytes);
    for (int64_t r = 0; r < kRows; ++r) {
        pack_fp8_panel(layout, r / kColumns, source, panel.data());
        read_panel_row(layout, panel.data(), r % kColumns, row.data());
        EXPECT_EQ(row[15], scales[size_t(2 * r)]);
        EXPECT_EQ(row[16], scales[size_t(2 * r + 1)]);
    }
}

class QuantisedPanels : public testing::TestWithParam<pb_dtype> {
  protected:
    static constexpr int64_t kRowsOfCodes = 33, kWide = 21, kGroups = 2;

    QuantisedPanels() {
        for (int64_t r = 0; r < kRowsOfCodes; ++r)
            for (int64_t c = 0; c < kWide; ++c) set_code(r, c, code(r, c));
        for (int64_t i = 0; i < kRowsOfCodes * kGroups; ++i) {
            scales_.push_back(i % 2 == 0 ? 0.5f : 2.0f);
            offsets_.push_back(i % 3 == 0 ? 8.0f : -4.0f);
        }
        std::iota(order_.begin(), order_.end(), 0);
        std::reverse(order_.begin(), order_.end());
        source_ = {.dtype = GetParam(), .rows = kRowsOfCodes, .cols = kWide, .codes = codes_.data(), .group = 16,
                   .scales = scales_.data(), .offsets = offsets_.data()};
    }
    static int code(int64_t r, int64_t c) { return int((r * 5 + c * 3) % 16) - 8; }
    void set_code(int64_t r, int64_t c, int value) {
        if (GetParam() == PB_I8) {
            codes_[size_t(r * kWide + c)] = uint8_t(value);
        } else {
            uint8_t& byte = codes_[size_t(r * ((kWide + 1) / 2) + c / 2)];
            byte = uint8_t(c % 2 == 0 ? (byte & 0xf0) | (value & 15) : (byte & 0x0f) | value << 4);
        }
    }
    void expect_rows(const int32_t* order) {
        const QuantisedLayout layout = quantised_layout(source_);
        const QuantisedUnits units = quantised_units(source_);
        std::vector<uint8_t> panel(size_t(layout.panel_bytes()));
        std::vector<float> row(kWide);
        for (const int64_t r : {int64_t{0}, int64_t{31}, int64_t{32}}) {
            pack_quantised_panel(layout, units, r / kQuantisedColumns, source_, panel.data());
            read_quantised_row(layout, units, panel.data(), r % kQuantisedColumns, order, row.data());
            for (int64_t c = 0; c < kWide; ++c) {
                const auto group = size_t(r * kGroups + c / 16);
                EXPECT_EQ(row[size_t(order ? order[c] : c)], float(code(r, c)) * scales_[group] + offsets_[group]);
            }
        }
    }

    std::vector<uint8_t> codes_ = std::vector<uint8_t>(kRowsOfCodes * kWide);
    std::vector<float> scales_, offsets_;
    std::vector<int32_t> order_ = std::vector<int32_t>(kWide);
    QuantisedSource source_;
};

TEST_P(QuantisedPanels, HaveCodesAndThenScalesAndOffsetsOfEachGroup) {
    const QuantisedLayout layout = quantised_layout(source_);
    EXPECT_EQ(layout.panels(), 2);
    EXPECT_EQ(layout.groups, 2);
    EXPECT_EQ(layout.code_bytes, 16 * 32 * (GetParam() == PB_I8 ? 2 : 1) / 2);
    EXPECT_EQ(layout.group_bytes, layout.code_bytes + 2 * 32 * 2);
    EXPECT_EQ(layout.bytes(), uint64_t(2 * 2 * layout.group_bytes));
}

TEST_P(QuantisedPanels, GiveRowsBack) { // exactly, with scales and offsets that are powers of two
    expect_rows(nullptr);
    expect_rows(order_.data());
}

INSTANTIATE_TEST_SUITE_P(Codes, QuantisedPanels, testing::Values(PB_I8, PB_I4),
                         [](const auto& test) { return test.param == PB_I8 ? "i8" : "i4"; });

TEST(QuantisedLayout, ARowWithOneScaleIsOneGroup) {
    constexpr int64_t kWide = 130; // three groups of 64
    std::vector<float> scales = {1, 1, 1, 2, 2, 2};
    QuantisedSource source{.dtype = PB_I8, .rows = 2, .cols = kWide, .group = 64, .scales = scales.data()};
    EXPECT_EQ(quantised_layout(source).groups, 1);
    EXPECT_EQ(quantised_layout(source).group, 192) << "K, padded";
    scales[4] = 3;
    EXPECT_EQ(quantised_layout(source).groups, 3);
}

}  // namespace
}  // namespace patchbay::kernels::panels_test
