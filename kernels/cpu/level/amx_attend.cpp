// Attention over pages of bf16 or codes in AMX tiles of bf16: q·k and weights·values are tile products, softmax between
// them runs in AVX-512. Every row of a tile is computed by the same operations whatever rows lie beside it.
#include <immintrin.h>

#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/tiles.inc"

constexpr int kTileDepth = 32; // elements, or keys, in a row of a tile of bf16
constexpr int kBlock = kAttendBlock;
constexpr int kGroups = kBlock / kKeyGroup;
constexpr int kStep = 2 * kSide; // queries whose sums are in tiles at once
constexpr float kNone = -__builtin_inff();
constexpr float kLog2E = 1.44269504088896341f;

// What each tile register is for.
enum { kUpperLeft, kUpperRight, kLowerLeft, kLowerRight, kUpperRows, kLowerRows, kLeft, kRight };

#include "cpu/level/keys_ahead.inc"
#include "cpu/level/attend_block.inc"
#include "cpu/level/attend_codes.inc"

using Ahead = KeysAhead<2, 2>;
constexpr int kAheadKeys = 2 * kBlock; // one block less is less than the time that memory takes

// What a part works in. Little of it is touched where heads are small.
struct alignas(64) Room {
    float scores[2][kStep * kBlock];         // of this step's queries and of the next one's
    uint16_t weights[kStep * kBlock];        // (queries of a step, keys)
    uint16_t q[kTileQueries * kMaxHeadDim]; // (queries, depth)
    Staging staging;
};

struct Shape { // of a part's tiles
    int64_t depth, width; // head_dim, padded for q·k and for the sums
    int upper, lower;     // rows of the tiles: 16 where there are several steps
};

void configure(const Shape& shape) {
    Configuration c;
    const auto set = [&](int tile, int rows) {
        c.row_bytes[tile] = rows ? 64 : 0;
        c.rows[tile] = static_cast<uint8_t>(rows);
    };
    set(kUpperLeft, shape.upper), set(kUpperRight, shape.upper), set(kUpperRows, shape.upper);
    set(kLowerLeft, shape.lower), set(kLowerRight, shape.lower), set(kLowerRows, shape.lower);
    set(kLeft, kSide), set(kRight, kSide);
    use(c);
}

// Of tiles: the last of several steps is padded.
int rows_of(const AttendPart& part) {
    return part.queries < kStep ? part.queries : (part.queries + kSide - 1) / kSide * kSide;
}

// to (queries, depth), padded with zeros, also to whole tiles of rows. A negative scale goes into q, so that the
// greatest product is the greatest score.
void round_queries(const AttendPart& part, int64_t depth, uint16_t* to) {
    const __m512i sign = _mm512_set1_epi32(part.scale < 0 ? int(0x80000000u) : 0);
    const int rows = rows_of(part);
    for (int64_t i = part.queries * depth; i < rows * depth; i += kTileDepth)
        _mm512_store_si512(to + i, _mm512_setzero_si512());
    for (int n = 0; n < part.queries; ++n)
        for (int64_t d = 0; d < depth; d += kTileDepth) {
            const auto at = [&](int64_t from) {
                const int64_t left = part.head_dim - from;
                const __mmask16 mask = left >= 16 ? 0xffff : left <= 0 ? 0 : static_cast<__mmask16>((1u << left) - 1);
                const __m512 x = _mm512_maskz_loadu_ps(mask, part.q[n] + (left > 0 ? from : 0));
                return _mm512_xor_ps(x, _mm512_castsi512_ps(sign));
            };
            _mm512_store_si512(to + n * depth + d, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(at(d + 16), at(d))));
        }
}

// scores (queries, kBlock), the columns of groups g and g + 1, = q · their keys.
template <bool kLower>
void multiply_keys(const uint16_t* rows, const Shape& shape, const uint8_t* const* groups, int g, float* scores,
                   Ahead& ahead) {
    constexpr int64_t kStride = kBlock * sizeof(float);
    const int64_t stride = shape.depth * int64_t(sizeof(uint16_t));
    const auto* q = reinterpret_cast<const uint8_t*>(rows);
    const uint8_t *left = groups[g], *right = groups[g + 1];
    zero<kUpperLeft>();
    zero<kUpperRight>();
    if constexpr (kLower) {
        zero<kLowerLeft>();
        zero<kLowerRight>();
    }
    for (int64_t d = 0; d < shape.depth; d += kTileDepth, q += 64, left += kTileBytes, right += kTileBytes) {
        ahead.touch_some();
        load<kUpperRows>(q, stride);
        load<kLeft>(left, 64);
        multiply_add<kUpperLeft, kUpperRows, kLeft>();
        load<kRight>(right, 64);
        multiply_add<kUpperRight, kUpperRows, kRight>();
        if constexpr (kLower) {
            load<kLowerRows>(q + kSide * stride, stride);
            multiply_add<kLowerLeft, kLowerRows, kLeft>();
            multiply_add<kLowerRight, kLowerRows, kRight>();
        }
    }
    float* to = scores + g * kKeyGroup;
    store<kUpperLeft>(to, kStride);
    store<kUpperRight>(to + kKeyGroup, kStride);
    if constexpr (kLower) {
        store<kLowerLeft>(to + kSide * kBlock, kStride);
        store<kLowerRight>(to + kSide * kBlock + kKeyGroup, kStride);
    }
}

// sum (queries, width), its columns [column, column + 16 or 32) += weights · values of the keys in the range. A pair of
// values is as long as a row of sums.
template <bool kLower, bool kBoth>
void multiply_values(const Room& room, const Shape& shape, KeyRange range, int64_t column, float* sum,
                     Ahead& ahead) {
    constexpr int64_t kWeightBytes = kBlock * sizeof(uint16_t);
    const int64_t stride = shape.width * int64_t(sizeof(float));
    float *upper = sum + column, *lower = upper + kSide * shape.width;
    load<kUpperLeft>(upper, stride);
    if constexpr (kBoth) load<kUpperRight>(upper + kSide, stride);
    if constexpr (kLower) {
        load<kLowerLeft>(lower, stride);
        if constexpr (kBoth) load<kLowerRight>(lower + kSide, stride);
    }
    const int begin = range.begin / kTileDepth * kTileDepth;
    const auto* weights = reinterpret_cast<const uint8_t*>(room.weights + begin);
    const auto* v = reinterpret_cast<const uint8_t*>(room.staging.values + begin * shape.width + column * 2);
    for (int key = begin; key < range.end; key += kTileDepth, weights += 64, v += kSide * stride) {
        ahead.touch_some();
        load<kUpperRows>(weights, kWeightBytes);
        load<kLeft>(v, stride);
        multiply_add<kUpperLeft, kUpperRows, kLeft>();
        if constexpr (kBoth) {
            load<kRight>(v + 64, stride);
            multiply_add<kUpperRight, kUpperRows, kRight>();
        }
        if constexpr (kLower) {
            load<kLowerRows>(weights + kSide * kWeightBytes, kWeightBytes);
            multiply_add<kLowerLeft, kLowerRows, kLeft>();
            if constexpr (kBoth) multiply_add<kLowerRight, kLowerRows, kRight>();
        }
    }
    store<kUpperLeft>(upper, stride);
    if constexpr (kBoth) store<kUpperRight>(upper + kSide, stride);
    if constexpr (kLower) {
        store<kLowerLeft>(lower, stride);
        if constexpr (kBoth) store<kLowerRight>(lower + kSide, stride);
    }
}

template <bool kLower>
void multiply_all_values(const Room& room, const Shape& shape, KeyRange range, float* sum, Ahead& ahead) {
    int64_t column = 0;
    for (; column + 2 * kSide <= shape.width; column += 2 * kSide)
        multiply_values<kLower, true>(room, shape, range, column, sum, ahead);
    if (column < shape.width) multiply_values<kLower, false>(room, shape, range, column, sum, ahead);
}

// What is under way of one part.
struct Work {
    const AttendPart& part;
    const Shape& shape;
    float* sum; // (queries, width)
    Room& room;
    Rows rows;
    Unit unit;

    // The block's.
    int64_t block;
    bool full; // every query sees every key
    KeyRange all, ranges[kTileQueries];
    const uint8_t* groups[kGroups];
    bool finite; // its values
    const Scales* scales; // null: of bf16
    Ahead ahead;

    int queries_from(int first) const { return part.queries - first < kStep ? part.queries - first : kStep; }
    bool has_lower(int first) const { return first < part.queries && queries_from(first) > shape.upper; }
};

void multiply_keys(Work& w, int first, int g, float* scores) {
    const uint16_t* q = w.room.q + first * w.shape.depth;
    if (w.has_lower(first)) multiply_keys<true>(q, w.shape, w.groups, g, scores, w.ahead);
    else multiply_keys<false>(q, w.shape, w.groups, g, scores, w.ahead);
}

void multiply_values(Work& w, int first, KeyRange range, float* sum) {
    if (w.has_lower(first)) multiply_all_values<true>(w.room, w.shape, range, sum, w.ahead);
    else multiply_all_values<false>(w.room, w.shape, range, sum, w.ahead);
}

// A value that is not finite must not reach rows that do not see its key, and 0 · ∞ is not 0: each row is computed with
// the values that it sees, and the others' results are dropped.
[[gnu::noinline]] void multiply_values_apart(Work& w, int first, float* sum) {
    alignas(64) float copy[kStep * kMaxHeadDim];
    const int64_t width = w.shape.width;
    for (int n = 0; n < w.queries_from(first); ++n) {
        const KeyRange range = w.ranges[first + n];
        if (range.end == 0) continue;
        stage_values<Look::kYes>(w.part, w.block, range, width, w.room.staging.values);
        __builtin_memcpy(copy, sum, size_t(kStep * width) * sizeof(float));
        multiply_values(w, first, range, copy);
        __builtin_memcpy(sum + n * width, copy + n * width, size_t(width) * sizeof(float));
    }
}

template <bool kMasked, bool kTimes>
void soften_rows(Work& w, int first, int from, int until, const float* scores) {
    float* sum = w.sum + first * w.shape.width;
    for (int n = from; n < until; ++n) {
        w.ahead.touch_some();
        soften<kMasked, kTimes>(scores, kTimes ? w.scales->values : nullptr, w.room.weights, n, first,
                                kMasked ? w.ranges[first + n] : KeyRange{}, w.unit, w.rows, sum, w.shape.width);
    }
}

// The tiles of the next step's scores are multiplied while this step's softmax runs.
void attend_block(Work& w, float scale) {
    const int begin = w.all.begin / kTileDepth * 2, end = (w.all.end + kKeyGroup - 1) / kKeyGroup;
    const auto soften_some = w.full ? (w.scales ? soften_rows<false, true> : soften_rows<false, false>)
                                    : (w.scales ? soften_rows<true, true> : soften_rows<true, false>);
    for (int g = begin; g < end; g += 2) multiply_keys(w, 0, g, w.room.scores[0]);
    for (int first = 0, turn = 0; first < w.part.queries; first += kStep, turn = 1 - turn) {
        float* scores = w.room.scores[turn];
        const int queries = w.queries_from(first);
        const bool more = first + kStep < w.part.queries;
        if (w.scales) apply_scales(scores, queries, w.scales->keys);
        if (w.part.soft_cap > 0) cap_scores(scores, queries, scale, w.part.soft_cap);
        int done = 0;
        for (int g = begin; g < end; g += 2) {
            if (more) multiply_keys(w, first + kStep, g, w.room.scores[1 - turn]);
            const int until = g + 2 < end ? done + kSide < queries ? done + kSide : queries : queries;
            soften_some(w, first, done, until, scores);
            done = until;
        }
        float* sum = w.sum + first * w.shape.width;
        if (w.full || w.finite) multiply_values(w, first, w.all, sum);
        else multiply_values_apart(w, first, sum);
    }
}

// Kv: uint16_t for bf16, or a code.
template <class Kv>
void attend(const AttendPart& part, const AttendState& state) {
    constexpr bool kCodes = sizeof(Kv) == 1;
    Room room;
    Scales scales{};
    Shape shape;
    shape.depth = (part.head_dim + kTileDepth - 1) / kTileDepth * kTileDepth;
    shape.width = state.stride;
    shape.upper = part.queries < kSide ? part.queries : kSide;
    shape.lower = part.queries < kStep ? part.queries - shape.upper : kSide;
    configure(shape);
    const float scale = part.scale < 0 ? -part.scale : part.scale;
    Work w{part, shape, state.sum, room, {}, Unit(part.soft_cap > 0 ? 1.0f : scale), 0, false, {}, {}, {}, true,
           kCodes ? &scales : nullptr, {}};
    int64_t min_position = part.position[0], max_position = min_position;
    for (int n = 0; n < part.queries; ++n) {
        w.rows.base[n] = kNone;
        w.rows.total[n] = _mm512_setzero_ps();
        min_position = part.position[n] < min_position ? part.position[n] : min_position;
        max_position = part.position[n] > max_position ? part.position[n] : max_position;
    }
    __builtin_memset(state.sum, 0, size_t(rows_of(part) * shape.width) * sizeof(float));
    round_queries(part, shape.depth, room.q);
    for (w.block = part.begin / kBlock * kBlock; w.block < part.end; w.block += kBlock) {
        w.full = w.block + kBlock <= min_position + 1 && (part.window == 0 || w.block + part.window > max_position);
        w.all = w.full ? KeyRange{0, kBlock} : find_ranges(part, w.block, w.ranges);
        if (w.all.end == 0) continue;
        if (part.queries <= kStep) w.ahead.aim(part, w.block + kAheadKeys, w.block + kAheadKeys, int64_t(sizeof(Kv)));
        if constexpr (kCodes) { // finite: what is not is in their scales
            stage_keys<Kv>(part, w.block, w.all, shape.depth, room.staging, w.groups);
            stage_code_values<Kv>(part, w.block, w.all, shape.width, room.staging.values);
            stage_scales<Kv>(part, w.block, w.all, scales);
        } else {
            find_groups(part, w.block, w.all, shape.depth, room.staging, w.groups);
            w.finite = w.full ? stage_values<Look::kNo>(part, w.block, w.all, shape.width, room.staging.values)
                              : stage_values<Look::kYes>(part, w.block, w.all, shape.width, room.staging.values);
        }
        attend_block(w, scale);
        w.ahead.touch_rest();
    }
    for (int n = 0; n < part.queries; ++n) {
        state.max_score[n] = w.rows.base[n] == kNone ? kNone : w.rows.base[n] * w.unit.scale;
        state.total[n] = _mm512_reduce_add_ps(w.rows.total[n]);
    }
    release();
}

// In the low halves of lanes, as f32_to_bf16 rounds: what pages hold is the same at every level.
__m512i round_to_bf16(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(_mm512_srli_epi32(up, 16), nan, high, _mm512_set1_epi32(0x40));
}

// The other half of each pair of values is another token's, which another thread may be writing: masks leave it alone.
void write_token(uint16_t* keys, uint16_t* values, int half, const float* k, const float* v, int64_t dim) {
    const auto first = [](int64_t n) {
        return static_cast<__mmask16>(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1);
    };
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i rows = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(kKeyGroup)); // of pairs of elements
    for (int64_t d = 0; d < dim; d += 32) {
        const int64_t left = dim - d;
        const auto key_at = [&](int64_t i) {
            const __m512 x = _mm512_maskz_loadu_ps(first(left - i), k + d + (left > i ? i : 0));
            return _mm512_cvtepi32_epi16(round_to_bf16(x));
        };
        const __m512i pairs = _mm512_inserti64x4(_mm512_castsi256_si512(key_at(0)), key_at(16), 1);
        _mm512_mask_i32scatter_epi32(keys + d * kKeyGroup, first(left / 2), rows, pairs, 4);
    }
    const __mmask32 mine = half ? 0xaaaaaaaau : 0x55555555u;
    for (int64_t d = 0; d < dim; d += 16) {
        const int64_t left = dim - d;
        const __m512i x = round_to_bf16(_mm512_maskz_loadu_ps(first(left), v + d));
        const __mmask32 there = left >= 16 ? mine : mine & ((1u << 2 * left) - 1);
        _mm512_mask_storeu_epi16(values + d * 2, there, half ? _mm512_slli_epi32(x, 16) : x);
    }
}

}  // namespace

constexpr TileAttend kAmxAttend = {attend<uint16_t>, attend<Int8Code>, attend<Fp8Code>, write_token};

}  // namespace patchbay::kernels
