// Products of codes by AVX-512 VNNI, whose one factor is unsigned: codes of 8 bits are taken plus 128, those of 4 are
// kept plus 8, and sums start where that has no effect.
#include <immintrin.h>

#include "cpu/quantised_table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/quantise.inc"
#include "cpu/level/quantised_512.inc"

constexpr int kSide = 4; // rows of a block
constexpr int kWide = 2; // vectors of columns beside one another where there are several rows

inline Codes load_codes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
inline Codes broadcast_four(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return {_mm512_set1_epi32(four)};
}
inline Codes as_factor(Codes w) { return {_mm512_xor_si512(w.v, _mm512_set1_epi32(int(0x80808080u)))}; }
inline Codes low_halves(Codes w) { return {_mm512_and_si512(w.v, _mm512_set1_epi32(0x0f0f0f0f))}; }
inline Codes high_halves(Codes w) {
    return {_mm512_and_si512(_mm512_srli_epi32(w.v, 4), _mm512_set1_epi32(0x0f0f0f0f))};
}
template <int kBits>
inline I start(int32_t code_sum) { return set_whole((kBits == 8 ? -128 : -8) * code_sum); }
template <int kBits>
inline I add_products(I sum, Codes w, Codes x) { return {_mm512_dpbusd_epi32(sum.v, w.v, x.v)}; }

#include "cpu/level/quantise_vectors.inc"
#include "cpu/level/quantised.inc"

constexpr int kManyRows = 6;        // by two vectors of columns: their whole sums and their sums fill 24 registers
constexpr int kWholeRows = 6;       // 8, 10 and 12 rows, which registers would hold, are slower
constexpr int kTallRows = 8;        // 16 whole sums wait less for one another than 12
template <int kBits, int kGroup>
constexpr bool kTall = kBits == kTallBits && kGroup >= kTallGroup; // 512 rows by codes of 8 bits are slower so
constexpr int64_t kNearDepth = 512; // of K, whose part of a panel stays in the first-level cache
template <int kBits>
constexpr int kTileVectors = 2;
template <int kBits>
constexpr int64_t kUnpackedLine = kLine;

template <int kBits>
inline uint8_t* unpack_line(uint8_t* to, const uint8_t* from) {
    for (int v = 0; v < kVectors; ++v) {
        const Codes w = load_codes(from + v * 64);
        _mm512_store_si512(to + v * 64, (kBits == 8 ? as_factor(w) : low_halves(w)).v);
        if (kBits == 4) _mm512_store_si512(to + kLine + v * 64, high_halves(w).v);
    }
    return to + (kBits == 8 ? 1 : 2) * kLine;
}

template <int kFours, int R>
inline void add_fours(I (&sums)[R][2], const uint8_t* w, const int8_t* x) {
#pragma GCC unroll 8
    for (int j = 0; j < kFours; ++j) {
        const Codes left = load_codes(w + j * kLine), right = load_codes(w + j * kLine + 64);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Codes four = broadcast_four(x + r * kQuantisedStep + j * 4);
            sums[r][0] = add_products<8>(sums[r][0], left, four);
            sums[r][1] = add_products<8>(sums[r][1], right, four);
        }
    }
}

// kQuantisedStep of K.
template <int kBits, int R>
inline void add_step(I (&sums)[R][2], const uint8_t* w, const int8_t* x) {
    for (int64_t i = 0; i < kQuantisedStep; i += 16, w += 4 * kLine) {
        add_fours<4, R>(sums, w, x + i);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) asm("" : "+v"(sums[r][0].v), "+v"(sums[r][1].v)); // or registers change places
    }
}

template <int kBits, int kGroup, int R>
inline void add_group(I (&sums)[R][2], const int32_t* starts, const uint8_t* w, const int8_t* x, int64_t step_bytes) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = set_whole(starts[r]);
    if constexpr (kGroup < kQuantisedStep) return add_fours<kGroup / 4, R>(sums, w, x);
    for (int64_t k = 0; k < kGroup; k += kQuantisedStep, x += step_bytes, w += 16 * kLine) add_step<kBits>(sums, w, x);
}

#include "cpu/level/quantised_many.inc"
#include "cpu/level/quantised_whole.inc"

int64_t multiply_add(int64_t rounds) {
    constexpr int kChains = 12;
    I sums[kChains];
    for (int c = 0; c < kChains; ++c) sums[c] = set_whole(c);
    const Codes w = {_mm512_set1_epi32(0x01020304)}, x = {_mm512_set1_epi32(0x04030201)};
    for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
        for (int c = 0; c < kChains; ++c) sums[c] = add_products<8>(sums[c], w, x);
    }
    for (int c = 1; c < kChains; ++c) sums[0] = sums[0] + sums[c];
    volatile int32_t used = sum_of(sums[0]); // the loop is not to be removed
    (void)used;
    return rounds * kChains * kLanes * 4;
}

}  // namespace

constexpr QuantisedTable kVnniQuantised = {kSide, 0, quantise, linear, nullptr, multiply_add};
constexpr QuantisedTable kVnniManyQuantised = {kManyRows, 0, quantise, linear_many, many_scratch_bytes, multiply_add};
constexpr QuantisedTable kVnniTallQuantised = {kTallRows, 0, quantise, linear_many, many_scratch_bytes, multiply_add};
constexpr QuantisedTable kVnniWholeQuantised = {kWholeRows,   0,
                                                 quantise,     linear_whole,
                                                 whole_scratch_bytes, multiply_add};

}  // namespace patchbay::kernels
