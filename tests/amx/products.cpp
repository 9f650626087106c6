#include <immintrin.h>

#include "tiles.hpp"

namespace patchbay::amx_by_hand {
namespace {

// Whole rows are computed. Bytes beyond the configured ones are never read.
int element(const Tile& tile, int row, int n) {
    int out;
    __builtin_memcpy(&out, tile.rows[row] + 4 * n, sizeof out);
    return out;
}

template <bool kSigned>
__m512i words_of(__m256i bytes) {
    return kSigned ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
}

struct Operands {
    Tile& sum;
    const Tile &rows, &panel;
    const ProductShape& shape;
};

// The sums of kRows rows at once from `r` on: one row alone would wait for each of its additions.
template <int kRows, bool kSignedRows, bool kSignedPanel>
void multiply_add_rows(const Operands& o, int r) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    __m512i low[kRows] = {}, high[kRows] = {}; // pairs of sums of eight columns each
    for (int k = 0; k < o.shape.depth; ++k) {
        const __m512i all = _mm512_load_si512(o.panel.rows[k]);
        const __m512i left = words_of<kSignedPanel>(_mm512_castsi512_si256(all));
        const __m512i right = words_of<kSignedPanel>(_mm512_extracti64x4_epi64(all, 1));
        for (int i = 0; i < kRows; ++i) {
            const __m512i four = words_of<kSignedRows>(_mm256_set1_epi32(element(o.rows, r + i, k)));
            low[i] = _mm512_add_epi32(low[i], _mm512_madd_epi16(four, left));
            high[i] = _mm512_add_epi32(high[i], _mm512_madd_epi16(four, right));
        }
    }
    for (int i = 0; i < kRows; ++i) {
        __m512i to = _mm512_load_si512(o.sum.rows[r + i]);
        to = _mm512_add_epi32(to, _mm512_permutex2var_epi32(low[i], even, high[i]));
        to = _mm512_add_epi32(to, _mm512_permutex2var_epi32(low[i], odd, high[i]));
        _mm512_store_si512(o.sum.rows[r + i], to);
    }
}

template <bool kSignedRows, bool kSignedPanel>
void multiply_add_bytes(const Operands& o) {
    int r = 0;
    for (; r + 4 <= o.shape.rows; r += 4) multiply_add_rows<4, kSignedRows, kSignedPanel>(o, r);
    for (; r < o.shape.rows; ++r) multiply_add_rows<1, kSignedRows, kSignedPanel>(o, r);
}

// The first and the second element of each pair are summed apart.
template <int kRows>
void multiply_add_pairs(const Operands& o, int r) {
    const __m512i second = _mm512_set1_epi32(int(0xffff0000u));
    const auto first_of = [](__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); };
    const auto second_of = [&](__m512i pairs) { return _mm512_castsi512_ps(_mm512_and_si512(pairs, second)); };
    __m512 firsts[kRows] = {}, seconds[kRows] = {};
    for (int k = 0; k < o.shape.depth; ++k) {
        const __m512i w = _mm512_load_si512(o.panel.rows[k]);
        for (int i = 0; i < kRows; ++i) {
            const __m512i x = _mm512_set1_epi32(element(o.rows, r + i, k));
            firsts[i] = _mm512_fmadd_ps(first_of(x), first_of(w), firsts[i]);
            seconds[i] = _mm512_fmadd_ps(second_of(x), second_of(w), seconds[i]);
        }
    }
    for (int i = 0; i < kRows; ++i) {
        const __m512 to = _mm512_add_ps(_mm512_load_ps(o.sum.rows[r + i]), _mm512_add_ps(firsts[i], seconds[i]));
        _mm512_store_ps(o.sum.rows[r + i], to);
    }
}

[[gnu::noinline]] void multiply_add_pairs(const Operands& o) { // apart from what changes the rounding
    int r = 0;
    for (; r + 4 <= o.shape.rows; r += 4) multiply_add_pairs<4>(o, r);
    for (; r < o.shape.rows; ++r) multiply_add_pairs<1>(o, r);
}

}  // namespace

void multiply_add_bf16(Tile& sum, const Tile& rows, const Tile& panel, const ProductShape& shape) {
    constexpr unsigned kNoExceptions = 0x1f80, kDenormalsAre0 = 0x40, kFlushTo0 = 0x8000; // rounding to nearest even
    const unsigned before = _mm_getcsr();
    _mm_setcsr(kNoExceptions | kDenormalsAre0 | kFlushTo0);
    multiply_add_pairs({sum, rows, panel, shape});
    _mm_setcsr(before);
}

void multiply_add_bytes(Tile& sum, const Tile& rows, const Tile& panel, const ProductShape& shape, bool signed_rows,
                        bool signed_panel) {
    const auto work = signed_rows ? (signed_panel ? multiply_add_bytes<true, true> : multiply_add_bytes<true, false>)
                                  : (signed_panel ? multiply_add_bytes<false, true> : multiply_add_bytes<false, false>);
    work({sum, rows, panel, shape});
}

}  // namespace patchbay::amx_by_hand
