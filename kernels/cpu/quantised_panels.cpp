#include "cpu/quantised_panels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "cpu/dealing.hpp"

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
    float max_size = 0;
    for (int64_t i = 0; i < n; ++i) max_size = std::max(max_size, std::abs(values[i]));
    if (max_size == 0) return 0;
    const int shift = 15 - std::ilogb(max_size);
    return std::clamp(std::ldexp(max_size, shift) < 65520.0f ? shift : shift - 1, -113, 126);
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
QuantisedLayout quantised_layout(const QuantisedSource& source) {
    QuantisedLayout out{.rows = source.rows, .cols = source.cols, .group = group_of(source),
                        .bits = source.dtype == PB_I8 ? 8u : 4u, .has_offsets = source.offsets != nullptr};
    out.groups = ceil_div(out.cols, out.group);
    out.code_bytes = out.group * kLineBytes / (out.bits == 8 ? 4 : 8);
    out.group_bytes = out.code_bytes + kScaleBytes * (out.has_offsets ? 2 : 1);
    return out;
}

QuantisedUnits quantised_units(const QuantisedSource& source) {
    const int64_t scales = source.rows * ceil_div(source.cols, source.group);
    QuantisedUnits out{.scale = std::ldexp(1.0f, -to_f16_range(source.scales, scales))};
    if (source.offsets) out.offset = std::ldexp(1.0f, -to_f16_range(source.offsets, scales));
    return out;
}

void pack_quantised_panel(const QuantisedLayout& l, QuantisedUnits units, int64_t p, const QuantisedSource& source,
                          uint8_t* to) {
    std::memset(to, 0, size_t(l.panel_bytes()));
    const float to_scale = 1 / units.scale, to_offset = 1 / units.offset;
    const int64_t row_bytes = l.bits == 8 ? l.cols : (l.cols + 1) / 2;
    const int64_t scales = ceil_div(l.cols, source.group); // of a row, of which one stands for all if groups is 1
    std::vector<uint8_t> row(size_t(l.groups * l.group) + 4); // padded with codes of 0
    for (int64_t c = 0; c < kQuantisedColumns && p * kQuantisedColumns + c < l.rows; ++c) {
        const int64_t r = p * kQuantisedColumns + c;
        std::memcpy(row.data(), static_cast<const uint8_t*>(source.codes) + r * row_bytes, size_t(row_bytes));
        if (l.bits == 4 && l.cols % 2 == 1) row[size_t(row_bytes - 1)] &= 0x0f;
        for (int64_t g = 0; g < l.groups; ++g) {
            uint8_t* const group = to + g * l.group_bytes;
            const uint8_t* from = row.data() + g * l.group * l.bits / 8;
            for (int64_t i = 0; i < l.code_bytes / kLineBytes; ++i, from += 4) {
                uint32_t codes;
                std::memcpy(&codes, from, 4);
                if (l.bits == 4) codes = (spread(codes & 0xffffu) | spread(codes >> 16) << 4) ^ 0x88888888u;
                std::memcpy(group + i * kLineBytes + c * 4, &codes, 4);
            }
            const uint16_t scale = f32_to_f16(source.scales[r * scales + g] * to_scale);
            std::memcpy(group + l.code_bytes + c * 2, &scale, 2);
            if (!l.has_offsets) continue;
            const uint16_t offset = f32_to_f16(source.offsets[r * scales + g] * to_offset);
            std::memcpy(group + l.code_bytes + kScaleBytes + c * 2, &offset, 2);
        }
    }
}

void read_quantised_row(const QuantisedLayout& l, QuantisedUnits units, const uint8_t* panel, int64_t c,
                        const int32_t* order, float* out) {
    const auto value = [&](const uint8_t* at) {
        uint16_t half;
        std::memcpy(&half, at + c * 2, 2);
        return f16_to_f32(half);
    };
    for (int64_t g = 0; g < l.groups; ++g) {
        const uint8_t* const from = panel + g * l.group_bytes;
        const float scale = value(from + l.code_bytes) * units.scale;
        const float offset = l.has_offsets ? value(from + l.code_bytes + kScaleBytes) * units.offset : 0;
        for (int64_t k = 0; k < l.group && g * l.group + k < l.cols; ++k) {
            const int64_t column = g * l.group + k;
            const uint8_t byte = from[k / (l.bits == 8 ? 4 : 8) * kLineBytes + c * 4 + k % 4];
            const int code = l.bits == 8 ? int(static_cast<int8_t>(byte)) : (k % 8 < 4 ? byte & 15 : byte >> 4) - 8;
            out[order ? order[column] : column] = float(code) * scale + offset;
        }
    }
}

}  // namespace patchbay::kernels
