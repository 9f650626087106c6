// Products of codes in AMX tiles of 8 bits: 16 rows of x, or 8, by 16 columns, a group of K at a time. A group's whole
// sums leave the tiles by memory and join the columns' sums in registers while the next group is multiplied.
#include <immintrin.h>

#include "cpu/quantised_table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/quantise.inc"
#include "cpu/level/quantised_512.inc"
#include "cpu/level/quantise_vectors.inc"
#include "cpu/level/tiles.inc"

constexpr int64_t kColumns = kQuantisedColumns;
constexpr int64_t kFour = kColumns * 4;       // bytes of a panel's codes of four of K
constexpr int64_t kHalves = kColumns * 2;     // bytes: a scale of each column
constexpr int64_t kNearBytes = 1 << 20;       // of x that stay in the second-level cache
constexpr int64_t kNearDepth = 512;           // of K, whose part of a panel stays in the first-level cache
constexpr int64_t kDepth = kQuantisedStep;    // of K in a tile, at most
static_assert(kNearDepth % 128 == 0, "parts of K begin with a group, and with a tile of x");

// What each tile register is for: two groups at a time.
enum { kEvenSum, kOddSum, kEvenRows, kOddRows, kEvenPanel, kOddPanel };

template <int kSum, int kRows, int kPanel>
inline void multiply_add_codes() {
    asm volatile("tdpbssd %%tmm%c0, %%tmm%c1, %%tmm%c2" : : "i"(kPanel), "i"(kRows), "i"(kSum));
}

void configure(int64_t rows, int64_t depth) {
    Configuration c;
    const auto set = [&](int tile, int64_t lines, int64_t bytes) {
        c.rows[tile] = static_cast<uint8_t>(lines);
        c.row_bytes[tile] = static_cast<uint16_t>(bytes);
    };
    set(kEvenSum, rows, 64), set(kOddSum, rows, 64);
    set(kEvenRows, rows, depth), set(kOddRows, rows, depth);
    set(kEvenPanel, depth / 4, 64), set(kOddPanel, depth / 4, 64);
    use(c);
}

// What is read next, on its way from memory meanwhile.
struct Ahead {
    const uint8_t* at;
    int64_t lines; // a group

    void step() {
        for (int64_t i = 0; i < lines; ++i, at += 64) _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
    }
};

struct Operands { // a block of x by 16 columns of a panel, each from the first of `groups` groups on
    int64_t group, groups;
    const int8_t* x;       // (steps, kRows, kQuantisedStep)
    const float *x_scales, *x_sums; // (groups, kRows)
    const uint8_t* codes;
    int64_t code_stride;   // bytes from group to group
    const uint8_t* scales; // offsets lie kHalves after them
    int64_t scale_stride;
};

template <int kRows, int kOdd>
inline void multiply(const Operands& in, int64_t g, int32_t* whole) {
    constexpr int kSum = kOdd ? kOddSum : kEvenSum, kLeft = kOdd ? kOddRows : kEvenRows,
                  kRight = kOdd ? kOddPanel : kEvenPanel;
    const int64_t k = g * in.group;
    const int8_t* rows = in.x + k / kDepth * (kRows * kQuantisedStep) + k % kDepth;
    const uint8_t* panel = in.codes + g * in.code_stride;
    zero<kSum>();
    load<kLeft>(rows, kQuantisedStep);
    load<kRight>(panel, kFour);
    multiply_add_codes<kSum, kLeft, kRight>();
    if (in.group > kDepth) {
        load<kLeft>(rows + kRows * kQuantisedStep, kQuantisedStep);
        load<kRight>(panel + kDepth / 4 * kFour, kFour);
        multiply_add_codes<kSum, kLeft, kRight>();
    }
    store<kSum>(whole, kSide * sizeof(int32_t));
}

// acc (kRows, kSide) += the product; `fresh`: they are 0 before.
template <int kRows, bool kOffsets>
void multiply_half(const Operands& in, float* sums, bool fresh, Ahead& ahead) {
    alignas(64) int32_t whole[2][kRows * kSide];
    __m512 acc[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) acc[r] = fresh ? _mm512_setzero_ps() : _mm512_load_ps(sums + r * kSide);
    const auto add = [&](int64_t g, const int32_t* group) __attribute__((always_inline)) {
        const uint8_t* at = in.scales + g * in.scale_stride;
        const __m512 scale = load_halves(at).v;
        const float* x_scale = in.x_scales + g * kRows;
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
            const __m512 value = _mm512_cvtepi32_ps(_mm512_load_si512(group + r * kSide));
            acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(value, scale), _mm512_set1_ps(x_scale[r]), acc[r]);
        }
        if constexpr (kOffsets) {
            const __m512 offset = load_halves(at + kHalves).v;
            const float* x_sum = in.x_sums + g * kRows;
#pragma GCC unroll 16
            for (int r = 0; r < kRows; ++r) acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(x_sum[r]), offset, acc[r]);
        }
        ahead.step();
    };
    multiply<kRows, 0>(in, 0, whole[0]);
    int64_t g = 0;
    for (; g + 2 < in.groups; g += 2) {
        multiply<kRows, 1>(in, g + 1, whole[1]);
        add(g, whole[0]);
        multiply<kRows, 0>(in, g + 2, whole[0]);
        add(g + 1, whole[1]);
    }
    if (g + 1 < in.groups) multiply<kRows, 1>(in, g + 1, whole[1]);
    add(g, whole[0]);
    if (g + 1 < in.groups) add(g + 1, whole[1]);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) _mm512_store_ps(sums + r * kSide, acc[r]);
}

// out (rows, width) = sums (…, kSide) + bias
void write(float* out, int64_t out_stride, const float* sums, const float* bias, int64_t rows, int64_t width) {
    if (width <= 0) return;
    const __mmask16 mask = width >= kSide ? 0xffff : static_cast<__mmask16>((1u << width) - 1);
    const __m512 added = bias ? _mm512_loadu_ps(bias) : _mm512_setzero_ps();
    for (int64_t r = 0; r < rows; ++r) {
        const __m512 value = _mm512_load_ps(sums + r * kSide);
        _mm512_mask_storeu_ps(out + r * out_stride, mask, bias ? _mm512_add_ps(value, added) : value);
    }
}

// to: (depth / 4, columns, 4), of 8 bits
void unpack(uint8_t* to, const uint8_t* panel, int64_t groups, int64_t group, int64_t group_bytes) {
    const __m128i values = _mm_setr_epi8(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i value_of = _mm512_broadcast_i32x4(values);
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

int64_t near_blocks(int64_t block_bytes) { return block_bytes >= kNearBytes ? 1 : kNearBytes / block_bytes; }

// The sums of a panel and of blocks of x that are near, and the codes of 8 bits that those of 4 become.
template <int kRows>
int64_t scratch_bytes(const QuantisedRows& x, uint32_t bits) {
    const int64_t blocks = (x.rows + kRows - 1) / kRows, near = near_blocks(x.steps * kRows * kQuantisedStep);
    return (near < blocks ? near : blocks) * kRows * kColumns * int64_t(sizeof(float)) +
           (bits == 4 ? kNearDepth * kColumns : 0);
}

// Each sum runs over the groups in one chain, whatever the rows, panels and parts of K that it is computed among.
template <int kRows, bool kOffsets>
void multiply_panels(const QuantisedPart& part) {
    const QuantisedRows& x = part.x;
    const int64_t blocks = (x.rows + kRows - 1) / kRows, block_bytes = x.steps * kRows * kQuantisedStep;
    const int64_t near = near_blocks(block_bytes), near_groups = kNearDepth / x.group;
    const int64_t group_bytes = part.panel_bytes / x.groups, code_bytes = x.group * kColumns * part.bits / 8;
    auto* const unpacked = part.scratch;
    auto* const sums = reinterpret_cast<float*>(part.scratch + (part.bits == 4 ? kNearDepth * kColumns : 0));
    for (int64_t top = 0; top < blocks; top += near) {
        const int64_t bottom = top + near < blocks ? top + near : blocks;
        for (int64_t p = 0; p < part.panel_count; ++p)
            for (int64_t g = 0; g < x.groups; g += near_groups) {
                const int64_t groups = g + near_groups < x.groups ? near_groups : x.groups - g;
                const uint8_t* const codes = part.panels + p * part.panel_bytes + g * group_bytes;
                const int64_t turns = (bottom - top) * 2 * groups;
                Ahead ahead{codes + groups * group_bytes, (groups * group_bytes / 64 + turns - 1) / turns};
                if (part.bits == 4) unpack(unpacked, codes, groups, x.group, group_bytes);
                for (int64_t b = top; b < bottom; ++b)
                    for (int64_t left = 0; left < kColumns; left += kSide) {
                        const int64_t values = (b * x.groups + g) * kRows;
                        const int64_t row = b * kRows, column = p * kColumns + left;
                        float* const to = sums + ((b - top) * kColumns + left) * kRows;
                        multiply_half<kRows, kOffsets>(
                            {.group = x.group,
                             .groups = groups,
                             .x = x.codes + b * block_bytes + g * x.group * kRows,
                             .x_scales = x.scales + values,
                             .x_sums = x.sums + values,
                             .codes = (part.bits == 4 ? unpacked : codes) + left * 4,
                             .code_stride = part.bits == 4 ? x.group * kColumns : group_bytes,
                             .scales = codes + code_bytes + left * 2,
                             .scale_stride = group_bytes},
                            to, g == 0, ahead);
                        if (g + groups == x.groups)
                            write(part.out + row * part.out_stride + column, part.out_stride, to,
                                  part.bias ? part.bias + column : nullptr, x.rows - row < kRows ? x.rows - row : kRows,
                                  part.width - column);
                    }
            }
    }
}

template <int kRows>
void linear(const QuantisedPart& part) {
    configure(kRows, part.x.group < kDepth ? part.x.group : kDepth);
    if (part.has_offsets) multiply_panels<kRows, true>(part);
    else multiply_panels<kRows, false>(part);
    release();
}

// ---- codes of 8 bits with one scale for all of K ----
// Whole sums of up to 32 rows by 32 columns fill four tiles, over kNearDepth of K; between two such parts they lie in
// memory. No group's scale comes between them.

enum { kTopLeft, kTopRight, kBottomLeft, kBottomRight, kTop, kBottom, kLeft, kRight };

struct WholeOperands { // each from the first of `steps` steps of K on
    int64_t steps, block_bytes; // block_bytes: of x
    const int8_t* x;            // of the first block: (steps, kSide, kQuantisedStep)
    const uint8_t* codes;       // of a panel
    int32_t* sums;              // (blocks · kSide, kColumns)
    bool fresh;                 // they are 0 before
};

template <int kSum>
inline void begin_sum(const int32_t* sums, bool fresh) {
    if (fresh) zero<kSum>();
    else load<kSum>(sums, kColumns * sizeof(int32_t));
}

template <int kBlocks> // 1 or 2, of kSide rows
void multiply_whole(const WholeOperands& in, Ahead& ahead) {
    constexpr int64_t kStepBytes = kQuantisedStep * kColumns, kStride = kColumns * sizeof(int32_t);
    int32_t* const bottom = in.sums + kSide * kColumns;
    begin_sum<kTopLeft>(in.sums, in.fresh);
    begin_sum<kTopRight>(in.sums + kSide, in.fresh);
    if constexpr (kBlocks == 2) {
        begin_sum<kBottomLeft>(bottom, in.fresh);
        begin_sum<kBottomRight>(bottom + kSide, in.fresh);
    }
    const int8_t* x = in.x;
    const uint8_t* codes = in.codes;
    for (int64_t s = 0; s < in.steps; ++s, x += kSide * kQuantisedStep, codes += kStepBytes) {
        load<kTop>(x, kQuantisedStep);
        load<kLeft>(codes, kFour);
        load<kRight>(codes + kSide * 4, kFour);
        multiply_add_codes<kTopLeft, kTop, kLeft>();
        multiply_add_codes<kTopRight, kTop, kRight>();
        if constexpr (kBlocks == 2) {
            load<kBottom>(x + in.block_bytes, kQuantisedStep);
            multiply_add_codes<kBottomLeft, kBottom, kLeft>();
            multiply_add_codes<kBottomRight, kBottom, kRight>();
        }
        ahead.step();
    }
    store<kTopLeft>(in.sums, kStride);
    store<kTopRight>(in.sums + kSide, kStride);
    if constexpr (kBlocks == 2) {
        store<kBottomLeft>(bottom, kStride);
        store<kBottomRight>(bottom + kSide, kStride);
    }
}

int64_t whole_scratch_bytes(const QuantisedRows& x, uint32_t) {
    const int64_t blocks = (x.rows + kSide - 1) / kSide, near = near_blocks(x.steps * kSide * kQuantisedStep);
    return (near < blocks ? near : blocks) * kSide * kColumns * int64_t(sizeof(int32_t));
}

// out (rows, width) = sums (rows, kColumns) · scales (kColumns) · x_scales (rows) + bias, with the operations of VNNI
void write_scaled(float* out, int64_t out_stride, const int32_t* sums, const uint8_t* scales, const float* x_scales,
                  const float* bias, int64_t rows, int64_t width) {
    for (int64_t left = 0; left < kColumns && left < width; left += kSide) {
        const __mmask16 mask = width - left >= kSide ? 0xffff : static_cast<__mmask16>((1u << (width - left)) - 1);
        const __m512 scale = load_halves(scales + left * 2).v;
        const __m512 added = bias ? _mm512_loadu_ps(bias + left) : _mm512_setzero_ps();
        for (int64_t r = 0; r < rows; ++r) {
            const __m512 whole = _mm512_cvtepi32_ps(_mm512_load_si512(sums + r * kColumns + left));
            const __m512 value =
                _mm512_fmadd_ps(_mm512_mul_ps(whole, scale), _mm512_set1_ps(x_scales[r]), _mm512_setzero_ps());
            _mm512_mask_storeu_ps(out + r * out_stride + left, mask, bias ? _mm512_add_ps(value, added) : value);
        }
    }
}

void linear_whole(const QuantisedPart& part) {
    const QuantisedRows& x = part.x;
    const int64_t blocks = (x.rows + kSide - 1) / kSide, block_bytes = x.steps * kSide * kQuantisedStep;
    const int64_t near = near_blocks(block_bytes), near_steps = kNearDepth / kQuantisedStep;
    constexpr int64_t kStepBytes = kQuantisedStep * kColumns;
    auto* const sums = reinterpret_cast<int32_t*>(part.scratch);
    Configuration c;
    for (int tile = kTopLeft; tile <= kRight; ++tile) c.rows[tile] = kSide, c.row_bytes[tile] = 64;
    use(c);
    for (int64_t top = 0; top < blocks; top += near) {
        const int64_t bottom = top + near < blocks ? top + near : blocks;
        for (int64_t p = 0; p < part.panel_count; ++p) {
            const uint8_t* const panel = part.panels + p * part.panel_bytes;
            for (int64_t s = 0; s < x.steps; s += near_steps) {
                const int64_t steps = s + near_steps < x.steps ? near_steps : x.steps - s, bytes = steps * kStepBytes;
                const int64_t turns = (bottom - top + 1) / 2 * steps;
                Ahead ahead{panel + s * kStepBytes + bytes, (bytes / 64 + turns - 1) / turns};
                for (int64_t b = top; b < bottom; b += 2) {
                    const WholeOperands in = {.steps = steps,
                                              .block_bytes = block_bytes,
                                              .x = x.codes + b * block_bytes + s * kSide * kQuantisedStep,
                                              .codes = panel + s * kStepBytes,
                                              .sums = sums + (b - top) * kSide * kColumns,
                                              .fresh = s == 0};
                    if (b + 1 < bottom) multiply_whole<2>(in, ahead);
                    else multiply_whole<1>(in, ahead);
                }
            }
            const int64_t row = top * kSide, rows = (bottom < blocks ? bottom * kSide : x.rows) - row;
            write_scaled(part.out + row * part.out_stride + p * kColumns, part.out_stride, sums,
                         panel + x.steps * kStepBytes, x.scales + row, part.bias ? part.bias + p * kColumns : nullptr,
                         rows, part.width - p * kColumns);
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
    configure(kSide, kDepth);
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

constexpr QuantisedTable kAmxQuantised = {16, 1, quantise, linear<16>, scratch_bytes<16>, multiply_add};
constexpr QuantisedTable kAmxFewQuantised = {8, 1, quantise, linear<8>, scratch_bytes<8>, multiply_add};
constexpr QuantisedTable kAmxWholeQuantised = {16, 1, quantise, linear_whole, whole_scratch_bytes, multiply_add};

}  // namespace patchbay::kernels
