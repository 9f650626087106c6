// Products of codes by AVX2: pairs of codes become sums of 16 bits, which hold them: |code| ≤ 128, |x| ≤ 127.
#include <immintrin.h>

#include "cpu/quantised_table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/quantise.inc"

struct F {
    __m256 v;
};
struct I {
    __m256i v;
};
struct Codes {
    __m256i v;
};

constexpr int kLanes = 8;
constexpr int kSide = 4; // rows of a block
constexpr int kWide = 1; // vectors of columns beside one another where there are several rows

inline F operator+(F a, F b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F operator*(F a, F b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline I operator+(I a, I b) { return {_mm256_add_epi32(a.v, b.v)}; }
inline F load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void store(float* p, F a) { _mm256_storeu_ps(p, a.v); }
inline F set(float x) { return {_mm256_set1_ps(x)}; }
inline F mul_add(F a, F b, F c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline I load_whole(const int32_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p))}; }
inline void store_whole(int32_t* p, I a) { _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(p), a.v); }
inline F to_float(I a) { return {_mm256_cvtepi32_ps(a.v)}; }
inline F as_float(I a) { return {_mm256_castsi256_ps(a.v)}; }
inline I to_whole(F a) { return {_mm256_cvtps_epi32(a.v)}; }
inline I set_whole(int32_t x) { return {_mm256_set1_epi32(x)}; }
inline I greater(I a, I b) { return {_mm256_max_epi32(a.v, b.v)}; }
inline I size_bits(F a) { return {_mm256_and_si256(_mm256_castps_si256(a.v), _mm256_set1_epi32(0x7fffffff))}; }
inline void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

inline int32_t greatest(I a) {
    int32_t lanes[kLanes], max_lane = 0;
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(lanes), a.v);
    for (const int32_t lane : lanes) max_lane = lane > max_lane ? lane : max_lane;
    return max_lane;
}
inline int32_t sum_of(I a) {
    int32_t lanes[kLanes], sum = 0;
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(lanes), a.v);
    for (const int32_t lane : lanes) sum += lane;
    return sum;
}
inline void store_codes(int8_t* to, I a) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i_u*>(to), _mm_packs_epi16(words, words));
}

inline Codes load_codes(const uint8_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p))};
}
inline Codes broadcast_four(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return {_mm256_set1_epi32(four)};
}
inline Codes as_factor(Codes w) { return w; }
inline Codes low_halves(Codes w) { return {_mm256_and_si256(w.v, _mm256_set1_epi8(15))}; }
inline Codes high_halves(Codes w) {
    return {_mm256_and_si256(_mm256_srli_epi16(w.v, 4), _mm256_set1_epi8(15))};
}
template <int kBits>
inline I start(int32_t code_sum) { return set_whole(kBits == 8 ? 0 : -8 * code_sum); } // 4 bits are kept plus 8
template <int kBits>
inline I add_products(I sum, Codes w, Codes x) {
    const __m256i pairs = kBits == 8 ? _mm256_maddubs_epi16(_mm256_abs_epi8(w.v), _mm256_sign_epi8(x.v, w.v))
                                     : _mm256_maddubs_epi16(w.v, x.v);
    return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))};
}
inline F load_halves(const uint8_t* p) { // finite, so that an exponent is moved by a product
    const __m256i half = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p)));
    const __m256i size = _mm256_slli_epi32(_mm256_and_si256(half, _mm256_set1_epi32(0x7fff)), 13);
    const __m256 value = _mm256_mul_ps(_mm256_castsi256_ps(size), _mm256_set1_ps(0x1p112f));
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(half, _mm256_set1_epi32(0x8000)), 16);
    return {_mm256_or_ps(value, _mm256_castsi256_ps(sign))};
}

#include "cpu/level/quantise_vectors.inc"
#include "cpu/level/quantised.inc"

// With many rows codes of 8 bits are taken plus 128 and as two halves of 4 bits: sums of eight such products fit into
// 16 bits, which saves half of the operations for codes of 4 bits, and the sign's for those of 8.
constexpr int kManyRows = 4;
constexpr int kWholeRows = kManyRows;
constexpr int kTallRows = kManyRows;
template <int kBits, int kGroup>
constexpr bool kTall = false;
constexpr int64_t kNearDepth = 256; // of K, whose part of a panel stays in a first-level cache of 32 KiB
template <int kBits>
constexpr int kTileVectors = kBits == 8 ? 1 : 2; // of columns: two vectors of halves
template <int kBits>
constexpr int64_t kUnpackedLine = kBits == 8 ? 2 * kLine : kLine; // of four of K

// Of 8 bits: (group / 4, columns / kLanes, 2, kLanes, 4), the low halves and then the high.
template <int kBits>
inline uint8_t* unpack_line(uint8_t* to, const uint8_t* from) {
    const auto put = [](uint8_t* at, Codes x) { _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(at), x.v); };
    for (int v = 0; v < kVectors; ++v, from += 32) {
        Codes w = load_codes(from);
        if (kBits == 8) w = {_mm256_xor_si256(w.v, _mm256_set1_epi8(-128))};
        put(to + v * (kBits == 8 ? 64 : 32), low_halves(w));
        put(to + (kBits == 8 ? v * 64 + 32 : kLine + v * 32), high_halves(w));
    }
    return to + 2 * kLine;
}

// kFours ≤ 8 fours of K: each product is at most 2 · 15 · 127, and eight of them 30,480.
template <int kBits, int kFours, int R>
inline void add_fours(I (&whole)[R][kTileVectors<kBits>], const uint8_t* w, const int8_t* x) {
    __m256i pairs[R][2];
#pragma GCC unroll 8
    for (int j = 0; j < kFours; ++j, w += kUnpackedLine<kBits>) {
        const Codes left = load_codes(w), right = load_codes(w + 32);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Codes four = broadcast_four(x + r * kQuantisedStep + j * 4);
            const __m256i a = _mm256_maddubs_epi16(left.v, four.v), b = _mm256_maddubs_epi16(right.v, four.v);
            pairs[r][0] = j ? _mm256_add_epi16(pairs[r][0], a) : a;
            pairs[r][1] = j ? _mm256_add_epi16(pairs[r][1], b) : b;
            asm("" : "+x"(pairs[r][0]), "+x"(pairs[r][1])); // or a compiler keeps all products, to add them in a tree
        }
    }
    const __m256i left = _mm256_set1_epi16(1), right = _mm256_set1_epi16(kBits == 8 ? 16 : 1);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        I& last = whole[r][kTileVectors<kBits> - 1];
        whole[r][0] = whole[r][0] + I{_mm256_madd_epi16(pairs[r][0], left)};
        last = last + I{_mm256_madd_epi16(pairs[r][1], right)};
    }
}

// kQuantisedStep of K.
template <int kBits, int R>
inline void add_step(I (&whole)[R][kTileVectors<kBits>], const uint8_t* w, const int8_t* x) {
    add_fours<kBits, 8>(whole, w, x);
    add_fours<kBits, 8>(whole, w + 8 * kUnpackedLine<kBits>, x + 32);
}

template <int kBits, int kGroup, int R>
inline void add_group(I (&whole)[R][kTileVectors<kBits>], const int32_t* starts, const uint8_t* w, const int8_t* x,
                      int64_t step_bytes) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < kTileVectors<kBits>; ++v) whole[r][v] = set_whole(starts[r]);
    if constexpr (kGroup < kQuantisedStep) return add_fours<kBits, kGroup / 4>(whole, w, x);
    for (int64_t k = 0; k < kGroup; k += kQuantisedStep, x += step_bytes, w += 16 * kUnpackedLine<kBits>)
        add_step<kBits>(whole, w, x);
}

#include "cpu/level/quantised_many.inc"
#include "cpu/level/quantised_whole.inc"

int64_t multiply_add(int64_t rounds) {
    constexpr int kChains = 8;
    I sums[kChains];
    for (int c = 0; c < kChains; ++c) sums[c] = set_whole(c);
    const Codes w = {_mm256_set1_epi8(-3)};
    Codes x = {_mm256_set1_epi8(5)};
    for (int64_t r = 0; r < rounds; ++r) {
        asm volatile("" : "+x"(x.v)); // not the same product each time
#pragma GCC unroll 8
        for (int c = 0; c < kChains; ++c) sums[c] = add_products<8>(sums[c], w, x);
    }
    for (int c = 1; c < kChains; ++c) sums[0] = sums[0] + sums[c];
    volatile int32_t used = sum_of(sums[0]); // the loop is not to be removed
    (void)used;
    return rounds * kChains * kLanes * 4;
}

}  // namespace

constexpr QuantisedTable kAvx2Quantised = {kSide, 0, quantise, linear, nullptr, multiply_add};
constexpr QuantisedTable kAvx2ManyQuantised = {kManyRows, 0, quantise, linear_many, many_scratch_bytes, multiply_add};
constexpr QuantisedTable kAvx2WholeQuantised = {kWholeRows,   0,
                                                 quantise,     linear_whole,
                                                 whole_scratch_bytes, multiply_add};

}  // namespace patchbay::kernels
