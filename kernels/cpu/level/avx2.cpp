// AVX2 with FMA: eight lanes.
#include <immintrin.h>

#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

struct F { // a struct, so that the loops can write a * b
    __m256 v;
};

constexpr int kLanes = 8;
constexpr int kAccumulators = 12; // vectors of partial sums that fit the registers beside their operands

inline F operator+(F a, F b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F operator-(F a, F b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline F operator*(F a, F b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline F operator/(F a, F b) { return {_mm256_div_ps(a.v, b.v)}; }
inline F load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void store(float* p, F a) { _mm256_storeu_ps(p, a.v); }
inline F set(float x) { return {_mm256_set1_ps(x)}; }
inline F mul_add(F a, F b, F c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline F where_less(F a, F b, F yes, F no) {
    return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ))};
}
inline bool any_less(F a, F b) { return _mm256_movemask_ps(_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)) != 0; }
inline F min_of(F a, F b) { return {_mm256_min_ps(a.v, b.v)}; }
inline F max_of(F a, F b) { return {_mm256_max_ps(a.v, b.v)}; }
inline F quotient(F a, F b) { return a / b; }
inline F square_root(F a) { return {_mm256_sqrt_ps(a.v)}; }
inline F floor(F a) { return {_mm256_floor_ps(a.v)}; }
inline F pow2(F n) { // integral n in [−126, 127]
    const __m256i bits = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(bits, 23))};
}
inline F minus_quarter_turns(F a, F n) { // a − n·π/2, with π/2 in three parts
    a.v = _mm256_fnmadd_ps(n.v, _mm256_set1_ps(1.57079637050628662109f), a.v);
    a.v = _mm256_fnmadd_ps(n.v, _mm256_set1_ps(-4.37113900018624283e-8f), a.v);
    return {_mm256_fnmadd_ps(n.v, _mm256_set1_ps(1.71512468e-15f), a.v)};
}
inline __m256i load_words(const uint16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p)); }
inline F load_even(const uint16_t* pairs) { // bf16 pairs: the first of each
    return {_mm256_castsi256_ps(_mm256_slli_epi32(load_words(pairs), 16))};
}
inline F load_odd(const uint16_t* pairs) {
    return {_mm256_castsi256_ps(_mm256_and_si256(load_words(pairs), _mm256_set1_epi32(int(0xffff0000u))))};
}
inline F load(const uint16_t* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))};
}
template <class Code>
inline __m128i load_codes(const Code* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i_u*>(p)); }
inline F load(const Int8Code* p) { return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_codes(p)))}; }
// The bits of e4m3 are those of f16 whose exponents are less by 8.
constexpr float kFp8Unit = 256;
inline F load_in_units(const Fp8Code* p) {
    const __m128i moved = _mm_slli_epi16(_mm_cvtepi8_epi16(load_codes(p)), 7);
    return {_mm256_cvtph_ps(_mm_and_si128(moved, _mm_set1_epi16(int16_t(0xbfff))))};
}
inline F load(const Fp8Code* p) { return load_in_units(p) * set(kFp8Unit); }
inline void load_two(const Fp8Code* p, F& a, F& b) { a = load_in_units(p), b = load_in_units(p + kLanes); }

#include "cpu/level/loops.inc"

}  // namespace

constexpr Table kAvx2Table = make_table();

}  // namespace patchbay::kernels
