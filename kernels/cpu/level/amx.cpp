// linear() of bf16 weights in AMX tiles.
#include <immintrin.h>

#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/tiles.inc"

constexpr int kTileDepth = 32;     // of K in a tile
constexpr int kColumns = 2 * kSide; // of a panel
constexpr int kPair = 2 * kSide;    // rows that share a panel's loads
constexpr int64_t kNearBytes = 1 << 20; // of x that stay in the second-level cache
constexpr int64_t kNearSteps = 64;      // tiles of K that they have at most

// What each tile register is for.
enum { kUpperLeft, kUpperRight, kLowerLeft, kLowerRight, kUpperRows, kLowerRows, kLeft, kRight };

// For blocks of `upper` rows and `lower` rows below them; lower may be 0.
void configure(int64_t upper, int64_t lower) {
    Configuration c;
    const auto set = [&](int tile, int64_t rows) {
        c.row_bytes[tile] = rows ? 64 : 0;
        c.rows[tile] = static_cast<uint8_t>(rows);
    };
    set(kUpperLeft, upper), set(kUpperRight, upper), set(kUpperRows, upper);
    set(kLowerLeft, lower), set(kLowerRight, lower), set(kLowerRows, lower);
    set(kLeft, kSide), set(kRight, kSide);
    use(c);
}

// The panel that is next, brought into the second-level cache meanwhile.
struct Ahead {
    const uint8_t* panel;
    int64_t lines; // a step

    void step() {
        for (int64_t i = 0; i < lines; ++i, panel += 64)
            _mm_prefetch(reinterpret_cast<const char*>(panel), _MM_HINT_T1);
    }
};

// sums (32, 32) += rows of x · a panel over `steps` tiles of K; `fresh`: sums are 0 before.
template <bool kLower>
void multiply(float* sums, const uint8_t* upper, int64_t upper_tile, const uint8_t* lower, int64_t lower_tile,
              const uint8_t* panel, int64_t steps, bool fresh, Ahead& ahead) {
    constexpr int64_t kSumStride = kColumns * sizeof(float);
    if (fresh) {
        zero<kUpperLeft>();
        zero<kUpperRight>();
        if constexpr (kLower) {
            zero<kLowerLeft>();
            zero<kLowerRight>();
        }
    } else {
        load<kUpperLeft>(sums, kSumStride);
        load<kUpperRight>(sums + kSide, kSumStride);
        if constexpr (kLower) {
            load<kLowerLeft>(sums + kSide * kColumns, kSumStride);
            load<kLowerRight>(sums + kSide * kColumns + kSide, kSumStride);
        }
    }
    for (int64_t s = 0; s < steps; ++s) {
        ahead.step();
        load<kUpperRows>(upper, 64);
        load<kLeft>(panel, 128);
        multiply_add<kUpperLeft, kUpperRows, kLeft>();
        load<kRight>(panel + 64, 128);
        multiply_add<kUpperRight, kUpperRows, kRight>();
        if constexpr (kLower) {
            load<kLowerRows>(lower, 64);
            multiply_add<kLowerLeft, kLowerRows, kLeft>();
            multiply_add<kLowerRight, kLowerRows, kRight>();
        }
        upper += upper_tile;
        lower += lower_tile;
        panel += 2 * kTileBytes;
    }
    store<kUpperLeft>(sums, kSumStride);
    store<kUpperRight>(sums + kSide, kSumStride);
    if constexpr (kLower) {
        store<kLowerLeft>(sums + kSide * kColumns, kSumStride);
        store<kLowerRight>(sums + kSide * kColumns + kSide, kSumStride);
    }
}

// out (rows, width ≤ 32) = sums + bias
void write(float* out, int64_t out_stride, const float* sums, const float* bias, int64_t rows, int64_t width) {
    const __m512 zeros = _mm512_setzero_ps();
    const __m512 left_bias = bias ? _mm512_loadu_ps(bias) : zeros;
    const __m512 right_bias = bias ? _mm512_loadu_ps(bias + kSide) : zeros;
    const __mmask16 left = width >= kSide ? 0xffff : static_cast<__mmask16>((1u << width) - 1);
    const __mmask16 right = width >= kColumns ? 0xffff
                            : width <= kSide  ? 0
                                              : static_cast<__mmask16>((1u << (width - kSide)) - 1);
    for (int64_t r = 0; r < rows; ++r) {
        __m512 a = _mm512_loadu_ps(sums + r * kColumns), b = _mm512_loadu_ps(sums + r * kColumns + kSide);
        if (bias) {
            a = _mm512_add_ps(a, left_bias);
            b = _mm512_add_ps(b, right_bias);
        }
        _mm512_mask_storeu_ps(out + r * out_stride, left, a);
        _mm512_mask_storeu_ps(out + r * out_stride + kSide, right, b);
    }
}

void round_rows(uint16_t* to, const float* x, int64_t x_stride, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* from = x + r * x_stride;
        uint16_t* row = to + r * kTileDepth;
        for (int64_t k = 0; k < cols; k += kTileDepth, row += rows * kTileDepth) {
            const int64_t left = cols - k;
            const __mmask16 low = left >= 16 ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
            const __mmask16 high = left >= 32   ? 0xffff
                                   : left <= 16 ? 0
                                                : static_cast<__mmask16>((1u << (left - 16)) - 1);
            const __m512 a = _mm512_maskz_loadu_ps(low, from + k), b = _mm512_maskz_loadu_ps(high, from + k + 16);
            _mm512_storeu_si512(row, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
        }
    }
}

// Rows of x that stay in the second-level cache, beside a panel and the next one, while all panels go by.
int64_t near_rows(int64_t steps) {
    const int64_t rows = kNearBytes / (steps * 64) / kPair * kPair;
    return rows < kPair ? kPair : rows;
}

int64_t sums_floats(int64_t rows, int64_t depth, int64_t panel_count) {
    const int64_t steps = depth / kTileDepth, near = steps < kNearSteps ? steps : kNearSteps, most = near_rows(near);
    const int64_t pairs = ((rows < most ? rows : most) + kPair - 1) / kPair;
    return (steps > near ? pairs * panel_count : 1) * kPair * kColumns;
}

// Each sum runs over K in one chain, whatever the rows, panels and parts of K that it is computed among.
void linear(const TilePart& part) {
    const int64_t steps = part.depth / kTileDepth, panel_bytes = steps * 2 * kTileBytes, row_bytes = steps * 64;
    const int64_t near = steps < kNearSteps ? steps : kNearSteps, block = near_rows(near);
    const bool in_parts = steps > near; // of K: the sums of all panels are kept meanwhile
    const auto* x = reinterpret_cast<const uint8_t*>(part.x);
    int64_t configured = 0; // rows
    for (int64_t top = 0; top < part.rows; top += block) {
        const int64_t bottom = top + block < part.rows ? top + block : part.rows;
        const int64_t pairs = (bottom - top + kPair - 1) / kPair;
        for (int64_t step = 0; step < steps; step += near) {
            const int64_t count = step + near < steps ? near : steps - step;
            const bool last = step + count == steps;
            for (int64_t p = 0; p < part.panel_count; ++p) {
                const uint8_t* panel = part.panels + p * panel_bytes + step * 2 * kTileBytes;
                const uint8_t* next = p + 1 < part.panel_count
                                          ? panel + panel_bytes
                                          : part.panels + (last ? 0 : (step + count) * 2 * kTileBytes);
                const int64_t column = p * kColumns;
                Ahead ahead{next, (kPair + pairs - 1) / pairs}; // 32 lines of a panel a step, shared by the pairs
                for (int64_t pair = 0; pair < pairs; ++pair) {
                    const int64_t row = top + pair * kPair, rows = row + kPair < bottom ? kPair : bottom - row;
                    const int64_t upper = rows < kSide ? rows : kSide, lower = rows - upper;
                    if (rows != configured) configure(upper, lower);
                    configured = rows;
                    float* sums = part.sums + (in_parts ? p * pairs + pair : 0) * kPair * kColumns;
                    const uint8_t* u = x + row * row_bytes + step * upper * 64;
                    const uint8_t* l = x + (row + kSide) * row_bytes + step * lower * 64;
                    if (lower) multiply<true>(sums, u, upper * 64, l, lower * 64, panel, count, step == 0, ahead);
                    else multiply<false>(sums, u, upper * 64, l, 0, panel, count, step == 0, ahead);
                    if (last)
                        write(part.out + row * part.out_stride + column, part.out_stride, sums,
                              part.bias ? part.bias + column : nullptr, rows, part.width - column);
                }
            }
        }
    }
    release();
}

int64_t multiply_add(int64_t rounds) {
    alignas(64) uint16_t tiles[2 * kTileBytes]; // four; zeros would be faster than any weights
    uint32_t bits = 1;
    for (uint16_t& x : tiles) {
        bits = bits * 1664525u + 1013904223u;
        x = static_cast<uint16_t>(0x3f00u | (bits >> 16 & 0x80ffu)); // ±0.5 to ±2
    }
    configure(kSide, kSide);
    zero<kUpperLeft>(), zero<kUpperRight>(), zero<kLowerLeft>(), zero<kLowerRight>();
    for (int64_t r = 0; r < rounds; ++r) {
        load<kUpperRows>(tiles, 64);
        load<kLeft>(tiles + kTileBytes, 128);
        multiply_add<kUpperLeft, kUpperRows, kLeft>();
        load<kRight>(tiles + kTileBytes + 32, 128);
        multiply_add<kUpperRight, kUpperRows, kRight>();
        load<kLowerRows>(tiles + kTileBytes / 2, 64);
        multiply_add<kLowerLeft, kLowerRows, kLeft>();
        multiply_add<kLowerRight, kLowerRows, kRight>();
    }
    release();
    return rounds * 4 * kSide * kSide * kTileDepth;
}

}  // namespace

constexpr TileTable kAmxTiles = {kSide, kTileDepth, round_rows, linear, sums_floats, multiply_add};

}  // namespace patchbay::kernels
