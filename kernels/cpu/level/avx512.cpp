// AVX-512F: sixteen lanes.
#include <immintrin.h>

#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/vector_512.inc"

constexpr int kLanes = 16;
constexpr int kAccumulators = 24; // vectors of partial sums that fit the registers beside their operands

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
// The bits of e4m3 are those of f16 whose exponents are less by 8.
constexpr float kFp8Unit = 256;
inline __m256i as_f16(__m256i codes) { // 16 of 16 bits
    return _mm256_and_si256(_mm256_slli_epi16(codes, 7), _mm256_set1_epi16(int16_t(0xbfff)));
}
inline F load(const Fp8Code* p) {
    return F{_mm512_cvtph_ps(as_f16(_mm256_cvtepi8_epi16(load_codes(p))))} * set(kFp8Unit);
}
inline void load_two(const Fp8Code* p, F& a, F& b) {
    a = {_mm512_cvtph_ps(as_f16(_mm256_cvtepi8_epi16(load_codes(p))))};
    b = {_mm512_cvtph_ps(as_f16(_mm256_cvtepi8_epi16(load_codes(p + kLanes))))};
}

#include "cpu/level/loops.inc"

}  // namespace

constexpr Table kAvx512Table = make_table();

}  // namespace patchbay::kernels
