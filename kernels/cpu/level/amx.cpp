// AMX: tiles of 16 rows × 64 bytes, bf16 products summed in f32. Each of these instructions is written here, since
// GCC 12 takes its own _tile_loadconfig to read 8 of the 64 bytes and drops the stores of the others.
#include <immintrin.h>

#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

constexpr int kSide = 16;          // rows of a tile
constexpr int kTileDepth = 32;     // of K in a tile
constexpr int kTileBytes = 1024;
constexpr int kColumns = 2 * kSide; // of a panel
constexpr int64_t kNearBytes = 1 << 20;  // of panels that stay in the second-level cache while rows go by
constexpr int64_t kNearSteps = 16;       // of K in which 32 rows of x stay in the first-level cache
constexpr int64_t kMostPanels = 16;      // whose sums are kept between parts of K

// What each tile register is for.
enum { kUpperLeft, kUpperRight, kLowerLeft, kLowerRight, kUpperRows, kLowerRows, kLeft, kRight };

struct alignas(64) Configuration {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};
static_assert(sizeof(Configuration) == 64);

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
    asm volatile("ldtilecfg %0" : : "m"(c));
}

template <int kTile>
inline void zero() { asm volatile("tilezero %%tmm%c0" : : "i"(kTile)); }
template <int kTile>
inline void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(from), "r"(stride) : "memory");
}
template <int kTile>
inline void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(to), "r"(stride) : "memory");
}
template <int kSum, int kRows, int kPanel>
inline void multiply_add() {
    asm volatile("tdpbf16ps %%tmm%c0, %%tmm%c1, %%tmm%c2" : : "i"(kPanel), "i"(kRows), "i"(kSum));
}

// sums (32, 32) += rows of x · a panel over `steps` tiles of K; `fresh`: sums are 0 before.
template <bool kLower>
void multiply(float* sums, const uint8_t* upper, int64_t upper_tile, const uint8_t* lower, int64_t lower_tile,
              const uint8_t* panel, int64_t steps, bool fresh) {
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
            const __mmask16 high = left >= 32 ? 0xffff : left <= 16 ? 0 : static_cast<__mmask16>((1u << (left - 16)) - 1);
            const __m512 a = _mm512_maskz_loadu_ps(low, from + k), b = _mm512_maskz_loadu_ps(high, from + k + 16);
            _mm512_storeu_si512(row, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
        }
    }
}

// Each sum runs over K in one chain, whatever the rows, panels and parts of K that it is computed among.
void linear(const TilePart& part) {
    alignas(64) float sums[kMostPanels][2 * kSide * kColumns];
    const int64_t steps = part.depth / kTileDepth, panel_bytes = steps * 2 * kTileBytes;
    const int64_t near_steps = part.rows > 2 * kSide ? kNearSteps : steps;
    int64_t block = kNearBytes / panel_bytes;
    block = block < 1 ? 1 : block > kMostPanels ? kMostPanels : block;
    const int64_t row_bytes = part.depth * 2;
    const auto* x = reinterpret_cast<const uint8_t*>(part.x);
    int64_t configured = 0; // rows
    for (int64_t first = 0; first < part.panel_count; first += block) {
        const int64_t panels = first + block < part.panel_count ? block : part.panel_count - first;
        for (int64_t row = 0; row < part.rows; row += 2 * kSide) {
            const int64_t rows = row + 2 * kSide < part.rows ? 2 * kSide : part.rows - row;
            const int64_t upper = rows < kSide ? rows : kSide, lower = rows - upper;
            if (rows != configured) configure(upper, lower);
            configured = rows;
            const uint8_t* upper_rows = x + row * row_bytes;
            const uint8_t* lower_rows = upper_rows + kSide * row_bytes;
            for (int64_t step = 0; step < steps; step += near_steps) {
                const int64_t count = step + near_steps < steps ? near_steps : steps - step;
                for (int64_t p = 0; p < panels; ++p) {
                    const uint8_t* panel = part.panels + (first + p) * panel_bytes + step * 2 * kTileBytes;
                    const uint8_t* u = upper_rows + step * upper * 64;
                    const uint8_t* l = lower_rows + step * lower * 64;
                    if (lower) multiply<true>(sums[p], u, upper * 64, l, lower * 64, panel, count, step == 0);
                    else multiply<false>(sums[p], u, upper * 64, l, 0, panel, count, step == 0);
                    if (step + count < steps) continue;
                    const int64_t column = (first + p) * kColumns;
                    write(part.out + row * part.out_stride + column, part.out_stride, sums[p],
                          part.bias ? part.bias + column : nullptr, rows, part.width - column);
                }
            }
        }
    }
    asm volatile("tilerelease");
}

}  // namespace

constexpr TileTable kAmxTiles = {kSide, kTileDepth, round_rows, linear};

}  // namespace patchbay::kernels
