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

}  // namespace patchbay::kernels
