// Products of codes in AMX tiles of 8 bits, for many rows: 16 of x by 16 columns, a group of K at a time. A group's whole
// sums leave the tiles by memory and join the columns' sums in registers while the next group is multiplied.
#include <immintrin.h>

#include "cpu/quantised_table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/quantise.inc"
#include "cpu/level/tiles.inc"
#include "cpu/level/quantised_512.inc"

#include "cpu/level/quantise_vectors.inc"

constexpr int64_t kColumns = kQuantisedColumns;
constexpr int64_t kFour = kColumns * 4;       // bytes of a panel's codes of four of K
constexpr int64_t kHalves = kColumns * 2;     // bytes: a scale of each column
constexpr int64_t kBlockStep = kSide * kQuantisedStep; // bytes
constexpr int64_t kNearBytes = 1 << 20;       // of x that stay in the second-level cache
constexpr int64_t kDepth = kQuantisedStep;    // of K in a tile, at most

// What each tile register is for: two groups at a time.
enum { kEvenSum, kOddSum, kEvenRows, kOddRows, kEvenPanel, kOddPanel };

template <int kSum, int kRows, int kPanel>
inline void multiply_add_codes() {
    asm volatile("tdpbssd %%tmm%c0, %%tmm%c1, %%tmm%c2" : : "i"(kPanel), "i"(kRows), "i"(kSum));
}

void configure(int64_t depth) {
    Configuration c;
    const auto set = [&](int tile, int64_t rows, int64_t bytes) {
        c.rows[tile] = static_cast<uint8_t>(rows);
        c.row_bytes[tile] = static_cast<uint16_t>(bytes);
    };
    set(kEvenSum, kSide, 64), set(kOddSum, kSide, 64);
    set(kEvenRows, kSide, depth), set(kOddRows, kSide, depth);
    set(kEvenPanel, depth / 4, 64), set(kOddPanel, depth / 4, 64);
    use(c);
}

struct Ahead { // the panel that is next, brought into the second-level cache meanwhile
    const uint8_t* at;
    int64_t lines; // a group

    void step() {
        for (int64_t i = 0; i < lines; ++i, at += 64) _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
    }
};

struct Half { // 16 columns of a panel
    const uint8_t* codes;
    int64_t code_stride;   // bytes from group to group
    const uint8_t* scales; // of group 0; offsets lie kHalves behind
    int64_t scale_stride;
};

template <int kOdd>
inline void multiply(const QuantisedRows& x, const int8_t* codes, const Half& w, int64_t g, int32_t* whole) {
    constexpr int kSum = kOdd ? kOddSum : kEvenSum, kRows = kOdd ? kOddRows : kEvenRows,
                  kPanel = kOdd ? kOddPanel : kEvenPanel;
    const int64_t k = g * x.group;
    const int8_t* rows = codes + k / kDepth * kBlockStep + k % kDepth;
    const uint8_t* panel = w.codes + g * w.code_stride;
    zero<kSum>();
    load<kRows>(rows, kQuantisedStep);
    load<kPanel>(panel, kFour);
    multiply_add_codes<kSum, kRows, kPanel>();
    if (x.group > kDepth) {
        load<kRows>(rows + kBlockStep, kQuantisedStep);
        load<kPanel>(panel + kDepth / 4 * kFour, kFour);
        multiply_add_codes<kSum, kRows, kPanel>();
    }
    store<kSum>(whole, kSide * sizeof(int32_t));
}

// 16 rows of x by 16 columns, into out (rows, width). scales and sums: of the block.
template <bool kOffsets>
void multiply_half(const QuantisedRows& x, const int8_t* codes, const float* scales, const float* sums, const Half& w,
                   const float* bias, float* out, int64_t out_stride, int64_t rows, int64_t width, Ahead& ahead) {
    alignas(64) int32_t whole[2][kSide * kSide];
    __m512 acc[kSide];
#pragma GCC unroll 16
    for (int r = 0; r < kSide; ++r) acc[r] = _mm512_setzero_ps();
    const auto add = [&](int64_t g, const int32_t* group) __attribute__((always_inline)) {
        const uint8_t* at = w.scales + g * w.scale_stride;
        const __m512 scale = load_halves(at).v;
        const float* factor = scales + g * kSide;
#pragma GCC unroll 16
        for (int r = 0; r < kSide; ++r) {
            const __m512 value = _mm512_cvtepi32_ps(_mm512_load_si512(group + r * kSide));
            acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(value, scale), _mm512_set1_ps(factor[r]), acc[r]);
        }
        if constexpr (kOffsets) {
            const __m512 offset = load_halves(at + kHalves).v;
            const float* sum = sums + g * kSide;
#pragma GCC unroll 16
            for (int r = 0; r < kSide; ++r) acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(sum[r]), offset, acc[r]);
        }
    };
    multiply<0>(x, codes, w, 0, whole[0]);
    int64_t g = 0;
    for (; g + 2 < x.groups; g += 2) {
        multiply<1>(x, codes, w, g + 1, whole[1]);
        ahead.step();
        add(g, whole[0]);
        multiply<0>(x, codes, w, g + 2, whole[0]);
        ahead.step();
        add(g + 1, whole[1]);
    }
    if (g + 1 < x.groups) {
        multiply<1>(x, codes, w, g + 1, whole[1]);
        ahead.step();
        add(g, whole[0]);
        add(g + 1, whole[1]);
    } else {
        add(g, whole[0]);
    }
    ahead.step();
    if (width <= 0) return;
    const __mmask16 mask = width >= kSide ? 0xffff : static_cast<__mmask16>((1u << width) - 1);
    const __m512 added = bias ? _mm512_loadu_ps(bias) : _mm512_setzero_ps();
#pragma GCC unroll 16
    for (int r = 0; r < kSide; ++r)
        if (r < rows) _mm512_mask_storeu_ps(out + r * out_stride, mask, bias ? _mm512_add_ps(acc[r], added) : acc[r]);
}

// to: (depth / 4, columns, 4), of 8 bits
void unpack(uint8_t* to, const uint8_t* panel, int64_t groups, int64_t group, int64_t group_bytes) {
    const __m512i value_of = _mm512_broadcast_i32x4(_mm_setr_epi8(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
    const __m512i low = _mm512_set1_epi8(15);
    for (int64_t g = 0; g < groups; ++g)
        for (int64_t i = 0; i < group / 8; ++i, to += 2 * kFour)
            for (int64_t half = 0; half < kFour; half += 64) {
                const __m512i codes = _mm512_loadu_si512(panel + g * group_bytes + i * kFour + half);
                const __m512i high = _mm512_and_si512(_mm512_srli_epi32(codes, 4), low);
                _mm512_store_si512(to + half, _mm512_shuffle_epi8(value_of, _mm512_and_si512(codes, low)));
                _mm512_store_si512(to + kFour + half, _mm512_shuffle_epi8(value_of, high));
            }
}

int64_t scratch_bytes(int64_t depth, uint32_t bits) { return bits == 4 ? depth * kColumns : 0; }

void linear(const QuantisedPart& part) {
    const QuantisedRows& x = part.x;
    const int64_t blocks = (x.rows + kSide - 1) / kSide, block_bytes = x.steps * kBlockStep;
    const int64_t near = block_bytes >= kNearBytes ? 1 : kNearBytes / block_bytes;
    const int64_t group_bytes = part.panel_bytes / x.groups, code_bytes = x.group * kColumns * part.bits / 8;
    const auto multiply_part = part.has_offsets ? multiply_half<true> : multiply_half<false>;
    configure(x.group < kDepth ? x.group : kDepth);
    for (int64_t top = 0; top < blocks; top += near) {
        const int64_t bottom = top + near < blocks ? top + near : blocks;
        for (int64_t p = 0; p < part.panel_count; ++p) {
            const uint8_t* const panel = part.panels + p * part.panel_bytes;
            const int64_t turns = (bottom - top) * 2 * x.groups;
            Ahead ahead{panel + part.panel_bytes, (part.panel_bytes / 64 + turns - 1) / turns};
            if (part.bits == 4) unpack(part.scratch, panel, x.groups, x.group, group_bytes);
            for (int64_t b = top; b < bottom; ++b)
                for (int64_t left = 0; left < kColumns; left += kSide) {
                    const Half half = {(part.bits == 4 ? part.scratch : panel) + left * 4,
                                       part.bits == 4 ? x.group * kColumns : group_bytes,
                                       panel + code_bytes + left * 2, group_bytes};
                    const int64_t values = b * x.groups * kSide, column = p * kColumns + left, row = b * kSide;
                    multiply_part(x, x.codes + b * block_bytes, x.scales + values, x.sums + values, half,
                                  part.bias ? part.bias + column : nullptr, part.out + row * part.out_stride + column,
                                  part.out_stride, x.rows - row, part.width - column, ahead);
                }
        }
    }
    release();
}

int64_t multiply_add(int64_t rounds) {
    alignas(64) uint8_t tiles[2 * kTileBytes]; // zeros would be faster than any weights
    uint32_t bits = 1;
    for (uint8_t& x : tiles) {
        bits = bits * 1664525u + 1013904223u;
        x = static_cast<uint8_t>(bits >> 16);
    }
    configure(kDepth);
    zero<kEvenSum>(), zero<kOddSum>();
    for (int64_t r = 0; r < rounds; ++r) {
        load<kEvenRows>(tiles, 64);
        load<kEvenPanel>(tiles + kTileBytes, 64);
        multiply_add_codes<kEvenSum, kEvenRows, kEvenPanel>();
        load<kOddPanel>(tiles + kTileBytes / 2, 64);
        multiply_add_codes<kOddSum, kEvenRows, kOddPanel>();
    }
    release();
    return rounds * 2 * kSide * kSide * kDepth;
}

}  // namespace

constexpr QuantisedTable kAmxQuantised = {kSide, 1, quantise, linear, scratch_bytes, multiply_add};

}  // namespace patchbay::kernels
