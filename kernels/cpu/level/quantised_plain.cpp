// Products of codes on any machine: loops that a compiler may make vectors of.
#include "cpu/quantised_table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/quantise.inc"

float from_half(const uint8_t* at) {
    uint16_t half;
    __builtin_memcpy(&half, at, 2);
    const uint32_t bits = uint32_t(half & 0x7fffu) << 13;
    float size;
    __builtin_memcpy(&size, &bits, 4);
    return half & 0x8000u ? size * -0x1p112f : size * 0x1p112f;
}

void quantise(const QuantisingPart& part) {
    each_group(
        part,
        [](const float* x, int64_t n) {
            uint32_t max_bits = 0;
            for (int64_t i = 0; i < n; ++i) {
                uint32_t bits;
                __builtin_memcpy(&bits, x + i, 4);
                bits &= 0x7fffffffu;
                max_bits = bits > max_bits ? bits : max_bits;
            }
            return max_bits;
        },
        [](const float* x, int64_t n, float inverse, int8_t* codes, int64_t step_bytes) {
            int32_t sum = 0;
            for (int64_t i = 0; i < n; ++i) {
                const float rounded = x[i] * inverse + 0x1.8p23f; // whole: the last bit of the sum is worth 1
                int32_t code;
                __builtin_memcpy(&code, &rounded, 4);
                code -= 0x4b400000;
                codes[i / kQuantisedStep * step_bytes + i % kQuantisedStep] = int8_t(code);
                sum += code;
            }
            return sum;
        });
}

template <int kBits>
void row(const QuantisedPart& part, int64_t r, int64_t p) {
    constexpr int64_t C = kQuantisedColumns, kFours = kBits == 8 ? 1 : 2; // of K in a line
    const QuantisedRows& x = part.x;
    const int64_t block = r / x.side, lane = r % x.side;
    const int8_t* const codes = x.codes + (block * x.steps * x.side + lane) * kQuantisedStep;
    const uint8_t* at = part.panels + p * part.panel_bytes;
    float sums[C] = {};
    for (int64_t g = 0; g < x.groups; ++g) {
        int32_t whole[C] = {};
        for (int64_t k = g * x.group; k < (g + 1) * x.group; k += 4 * kFours, at += 4 * C) {
            const int8_t* in = codes + k / kQuantisedStep * x.side * kQuantisedStep + k % kQuantisedStep;
            for (int64_t c = 0; c < C; ++c)
                for (int64_t b = 0; b < 4; ++b) {
                    const uint8_t code = at[c * 4 + b];
                    if constexpr (kBits == 8) whole[c] += in[b] * int8_t(code);
                    else whole[c] += in[b] * ((code & 15) - 8) + in[4 + b] * ((code >> 4) - 8);
                }
        }
        const int64_t i = (block * x.groups + g) * x.side + lane;
        for (int64_t c = 0; c < C; ++c) sums[c] += float(whole[c]) * from_half(at + c * 2) * x.scales[i];
        at += 2 * C;
        if (!part.has_offsets) continue;
        for (int64_t c = 0; c < C; ++c) sums[c] += x.sums[i] * from_half(at + c * 2);
        at += 2 * C;
    }
    const int64_t left = part.width - p * C;
    for (int64_t c = 0; c < C && c < left; ++c)
        part.out[r * part.out_stride + p * C + c] = part.bias ? sums[c] + part.bias[p * C + c] : sums[c];
}

void linear(const QuantisedPart& part) {
    for (int64_t p = 0; p < part.panel_count; ++p)
        for (int64_t r = 0; r < part.x.rows; ++r) {
            if (part.bits == 8) row<8>(part, r, p);
            else row<4>(part, r, p);
        }
}

int64_t multiply_add(int64_t rounds) {
    constexpr int kLanes = 32;
    int32_t sums[kLanes];
    volatile int32_t start = 1;
    for (int i = 0; i < kLanes; ++i) sums[i] = start + i;
    for (int64_t r = 0; r < rounds; ++r)
        for (int i = 0; i < kLanes; ++i) sums[i] = int32_t(int8_t(sums[i])) * 3 + i;
    int32_t total = 0;
    for (const int32_t sum : sums) total ^= sum;
    start = total; // the loop is not to be removed
    return rounds * kLanes;
}

}  // namespace

constexpr QuantisedTable kPlainQuantised = {4, 0, quantise, linear, nullptr, multiply_add};

}  // namespace patchbay::kernels
