#include "cpu/quantised_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "cpu/dealing.hpp"
#include "cpu/tables.hpp"

namespace patchbay::kernels {
namespace {

constexpr int64_t kScaleBytes = kQuantisedColumns * sizeof(uint16_t);
constexpr int64_t kLineBytes = kQuantisedColumns * 4; // four codes of 8 bits, or eight of 4, of each column

// To nearest, ties to even. |x| < 65520.
uint16_t f32_to_f16(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size < 0x38800000u) // subnormal: in units of 2⁻²⁴, which is the last bit of 0.5
        return uint16_t(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u));
    return uint16_t(sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13);
}

float f16_to_f32(uint16_t x) { // finite
    const float size = std::bit_cast<float>(uint32_t(x & 0x7fffu) << 13) * 0x1p112f;
    return x & 0x8000u ? -size : size;
}

// 2ⁿ such that values · 2ⁿ use the whole range of f16. What f16 held before, it holds then.
int to_f16_range(const float* values, int64_t n) {
    float most = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(values[i]));
    if (most == 0) return 0;
    const int shift = 15 - std::ilogb(most);
    return std::clamp(std::ldexp(most, shift) < 65520.0f ? shift : shift - 1, -112, 126);
}

// Whether each row has one scale for all of K, which then counts as one group: its sums are whole numbers, of which
// those of up to kMaxWhole columns fit 32 bits (each product is at most 128 · 127).
bool has_row_scales(const QuantisedSource& source) {
    constexpr int64_t kMaxWhole = 1 << 17;
    const int64_t groups = ceil_div(source.cols, source.group);
    if (source.dtype != PB_I8 || source.offsets || source.cols <= kMaxGroup || source.cols > kMaxWhole) return false;
    for (const float* row = source.scales; row != source.scales + source.rows * groups; row += groups)
        if (std::adjacent_find(row, row + groups, std::not_equal_to<>()) != row + groups) return false;
    return true;
}

int64_t group_of(const QuantisedSource& source) {
    return has_row_scales(source) ? ceil_div(source.cols, kQuantisedStep) * kQuantisedStep : source.group;
}

// The halves of each byte of the lower 16 bits, one a byte.
uint32_t spread(uint32_t x) {
    x = (x | x << 8) & 0x00ff00ffu;
    return (x | x << 4) & 0x0f0f0f0fu;
}

}  // namespace

// A panel: for each group its codes, then the scales of its columns in f16, then their offsets where there are any.
// Codes of 8 bits: (group / 4, columns, 4). Codes of 4 bits, plus 8: (group / 8, columns, 4), where the low halves of
// four bytes are one four of K and the high halves the next.
QuantisedMatrix::QuantisedMatrix(const Machine& machine, const QuantisedSource& source)
    : rows_(source.rows),
      cols_(source.cols),
      group_(group_of(source)),
      groups_(ceil_div(cols_, group_)),
      bits_(source.dtype == PB_I8 ? 8 : 4),
      has_offsets_(source.offsets != nullptr),
      code_bytes_(group_ * kLineBytes / (bits_ == 8 ? 4 : 8)),
      group_bytes_(code_bytes_ + kScaleBytes * (has_offsets_ ? 2 : 1)) {
    const int64_t scales = rows_ * ceil_div(cols_, source.group);
    scale_unit_ = std::ldexp(1.0f, -to_f16_range(source.scales, scales));
    if (has_offsets_) offset_unit_ = std::ldexp(1.0f, -to_f16_range(source.offsets, scales));
    if (source.bias) {
        bias_.resize(size_t(panels() * kQuantisedColumns));
        std::copy_n(source.bias, rows_, bias_.begin());
    }
    if (source.order) order_.assign(source.order, source.order + cols_);
    const auto bytes = uint64_t(panels() * panel_bytes());
    memory_ = machine.matrices ? machine.matrices->take(bytes) : allocate_aligned(bytes);
    split_rows(machine.workers, panels(), kQuantisedColumns * cols_, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) pack_panel(p, source);
    });
}

void QuantisedMatrix::pack_panel(int64_t p, const QuantisedSource& source) {
    uint8_t* const panel = memory_.get() + p * panel_bytes();
    std::memset(panel, 0, size_t(panel_bytes()));
    const float to_scale = 1 / scale_unit_, to_offset = 1 / offset_unit_;
    const int64_t row_bytes = bits_ == 8 ? cols_ : (cols_ + 1) / 2;
    const int64_t scales = ceil_div(cols_, source.group); // of a row, of which one stands for all where groups_ is 1
    std::vector<uint8_t> row(size_t(groups_ * group_) + 4); // padded with codes of 0
    for (int64_t c = 0; c < kQuantisedColumns && p * kQuantisedColumns + c < rows_; ++c) {
        const int64_t r = p * kQuantisedColumns + c;
        std::memcpy(row.data(), static_cast<const uint8_t*>(source.codes) + r * row_bytes, size_t(row_bytes));
        if (bits_ == 4 && cols_ % 2 == 1) row[size_t(row_bytes - 1)] &= 0x0f;
        for (int64_t g = 0; g < groups_; ++g) {
            uint8_t* const to = panel + g * group_bytes_;
            const uint8_t* from = row.data() + g * group_ * bits_ / 8;
            for (int64_t i = 0; i < code_bytes_ / kLineBytes; ++i, from += 4) {
                uint32_t codes;
                std::memcpy(&codes, from, 4);
                if (bits_ == 4) codes = (spread(codes & 0xffffu) | spread(codes >> 16) << 4) ^ 0x88888888u;
                std::memcpy(to + i * kLineBytes + c * 4, &codes, 4);
            }
            const uint16_t scale = f32_to_f16(source.scales[r * scales + g] * to_scale);
            std::memcpy(to + code_bytes_ + c * 2, &scale, 2);
            if (!has_offsets_) continue;
            const uint16_t offset = f32_to_f16(source.offsets[r * scales + g] * to_offset);
            std::memcpy(to + code_bytes_ + kScaleBytes + c * 2, &offset, 2);
        }
    }
}

uint64_t QuantisedMatrix::bytes() const {
    return uint64_t(panels() * panel_bytes()) + bias_.size() * sizeof(float) + order_.size() * sizeof(int32_t);
}

void QuantisedMatrix::read_row(int64_t row, float* out) const {
    const uint8_t* const panel = this->panel(row / kQuantisedColumns);
    const int64_t c = row % kQuantisedColumns;
    const auto value = [&](const uint8_t* at) {
        uint16_t half;
        std::memcpy(&half, at + c * 2, 2);
        return f16_to_f32(half);
    };
    for (int64_t g = 0; g < groups_; ++g) {
        const uint8_t* const from = panel + g * group_bytes_;
        const float scale = value(from + code_bytes_) * scale_unit_;
        const float offset = has_offsets_ ? value(from + code_bytes_ + kScaleBytes) * offset_unit_ : 0;
        for (int64_t k = 0; k < group_ && g * group_ + k < cols_; ++k) {
            const int64_t column = g * group_ + k;
            const uint8_t byte = from[k / (bits_ == 8 ? 4 : 8) * kLineBytes + c * 4 + k % 4];
            const int code = bits_ == 8 ? int(static_cast<int8_t>(byte)) : (k % 8 < 4 ? byte & 15 : byte >> 4) - 8;
            out[order_.empty() ? column : order_[size_t(column)]] = float(code) * scale + offset;
        }
    }
}

}  // namespace patchbay::kernels
