// AVX-512F: sixteen lanes.
#include <immintrin.h>

#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

struct F { // a struct, so that the loops can write a * b
    __m512 v;
};

constexpr int kLanes = 16;
constexpr int kRows = 6;          // of a linear() tile
constexpr int kAccumulators = 24; // vectors of partial sums that fit the registers beside their operands

inline F operator+(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F operator-(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F operator*(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F operator/(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
inline F set(float x) { return {_mm512_set1_ps(x)}; }
inline F mul_add(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F where_less(F a, F b, F yes, F no) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}
inline F square_root(F a) { return {_mm512_sqrt_ps(a.v)}; }
inline F floor(F a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
inline F pow2(F n) { // integral n in [−126, 127]
    const __m512i bits = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 23))};
}
inline F minus_quarter_turns(F a, F n) { // a − n·π/2, with π/2 in three parts
    a.v = _mm512_fnmadd_ps(n.v, _mm512_set1_ps(1.57079637050628662109f), a.v);
    a.v = _mm512_fnmadd_ps(n.v, _mm512_set1_ps(-4.37113900018624283e-8f), a.v);
    return {_mm512_fnmadd_ps(n.v, _mm512_set1_ps(1.71512468e-15f), a.v)};
}
inline F load_even(const uint16_t* pairs) { // bf16 pairs: the first of each
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(pairs), 16))};
}
inline F load_odd(const uint16_t* pairs) {
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(pairs), _mm512_set1_epi32(int(0xffff0000u))))};
}
inline F load(const uint16_t* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
template <class Code>
inline __m128i load_codes(const Code* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p)); }
inline F load(const Int8Code* p) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_codes(p)))}; }
inline F load(const Fp8Code* p) { // the bits of f16, whose exponents are less by 8
    const __m256i moved = _mm256_slli_epi16(_mm256_cvtepi8_epi16(load_codes(p)), 7);
    const __m256i half = _mm256_and_si256(moved, _mm256_set1_epi16(int16_t(0xbfff)));
    return {_mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256))};
}

#include "cpu/level/loops.inc"

}  // namespace

constexpr Table kAvx512Table = make_table();

}  // namespace patchbay::kernels
