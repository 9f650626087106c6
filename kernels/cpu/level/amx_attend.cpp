// Attention over bf16 pages in AMX tiles: q·k and weights·values are tile products, softmax between them runs in
// AVX-512. Every row of a tile is computed by the same operations whatever rows lie beside it.
#include <immintrin.h>

#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/tiles.inc"

constexpr int kTileDepth = 32; // elements, or keys, in a row of a tile of bf16
constexpr int kGroups = kAttendBlock / kKeyGroup;
constexpr int kPairs = kAttendBlock / 2; // of keys, side by side in a page
constexpr float kNone = -__builtin_inff();
constexpr float kLog2E = 1.44269504088896341f;

// What each tile register is for.
enum { kUpperLeft, kUpperRight, kLowerLeft, kLowerRight, kUpperRows, kLowerRows, kLeft, kRight };

#include "cpu/level/attend_block.inc"

// What a part works in. Little of it is touched where heads are small.
struct alignas(64) Room {
    float scores[kTileQueries * kAttendBlock];
    uint16_t weights[kTileQueries * kAttendBlock]; // (queries, keys)
    uint16_t q[kTileQueries * kMostHeadDim];       // (queries, depth)
    Staging staging;
};

struct Shape { // of a part's tiles
    int64_t dim, depth, width; // head_dim; padded for q·k; padded for the sums
    int upper, lower;          // rows of the tiles
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

// to (queries, depth), padded with zeros. A negative scale goes into q: below, the greatest product is the greatest
// score.
void round_queries(const AttendPart& part, int64_t depth, uint16_t* to) {
    const __m512i sign = _mm512_set1_epi32(part.scale < 0 ? int(0x80000000u) : 0);
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

// scores (queries, 64) = q · the block's keys.
template <bool kLower>
void multiply_keys(const Room& room, const Shape& shape, const uint8_t* const* groups, float* scores) {
    constexpr int64_t kStride = kAttendBlock * sizeof(float);
    const int64_t stride = shape.depth * int64_t(sizeof(uint16_t));
    for (int g = 0; g < kGroups; g += 2) {
        const auto* q = reinterpret_cast<const uint8_t*>(room.q);
        const uint8_t *left = groups[g], *right = groups[g + 1];
        zero<kUpperLeft>();
        zero<kUpperRight>();
        if constexpr (kLower) {
            zero<kLowerLeft>();
            zero<kLowerRight>();
        }
        for (int64_t d = 0; d < shape.depth; d += kTileDepth, q += 64, left += kTileBytes, right += kTileBytes) {
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
            store<kLowerLeft>(to + kSide * kAttendBlock, kStride);
            store<kLowerRight>(to + kSide * kAttendBlock + kKeyGroup, kStride);
        }
    }
}

// sum (queries, width), its columns [column, column + 16 or 32) += weights · values, pairs of keys `stride` bytes apart.
template <bool kLower, bool kBoth>
void multiply_values(const Room& room, const Shape& shape, int64_t column, const uint8_t* values, int64_t pair_bytes,
                     float* sum) {
    constexpr int64_t kWeightBytes = kAttendBlock * sizeof(uint16_t);
    const int64_t stride = shape.width * int64_t(sizeof(float));
    float *upper = sum + column, *lower = upper + kSide * shape.width;
    load<kUpperLeft>(upper, stride);
    if constexpr (kBoth) load<kUpperRight>(upper + kSide, stride);
    if constexpr (kLower) {
        load<kLowerLeft>(lower, stride);
        if constexpr (kBoth) load<kLowerRight>(lower + kSide, stride);
    }
    const auto* weights = reinterpret_cast<const uint8_t*>(room.weights);
    const uint8_t* v = values + column * 4;
    for (int k = 0; k < kAttendBlock; k += kTileDepth, weights += 64, v += kSide * pair_bytes) {
        load<kUpperRows>(weights, kWeightBytes);
        load<kLeft>(v, pair_bytes);
        multiply_add<kUpperLeft, kUpperRows, kLeft>();
        if constexpr (kBoth) {
            load<kRight>(v + 64, pair_bytes);
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
void multiply_all_values(const Room& room, const Shape& shape, const uint8_t* values, int64_t pair_bytes, float* sum) {
    int64_t column = 0;
    for (; column + 2 * kSide <= shape.width; column += 2 * kSide)
        multiply_values<kLower, true>(room, shape, column, values, pair_bytes, sum);
    if (column < shape.width) multiply_values<kLower, false>(room, shape, column, values, pair_bytes, sum);
}

// A value that is not finite must not reach rows that do not see its key, and 0 · ∞ is not 0: each row is computed with
// the values that it sees, and the others' results are dropped.
template <bool kLower>
[[gnu::noinline]] void multiply_values_apart(const AttendPart& part, Room& room, const Shape& shape, int64_t block,
                                             const KeyRange* ranges, float* sum) {
    alignas(64) float copy[kTileQueries * kMostHeadDim];
    const int64_t size = part.queries * shape.width;
    for (int n = 0; n < part.queries; ++n) {
        if (ranges[n].end == 0) continue;
        stage_values<Look::kYes>(part, block, ranges[n], shape.width, room.staging.values);
        __builtin_memcpy(copy, sum, size_t(size) * sizeof(float));
        multiply_all_values<kLower>(room, shape, reinterpret_cast<const uint8_t*>(room.staging.values),
                                    shape.width * 4, copy);
        __builtin_memcpy(sum + n * shape.width, copy + n * shape.width, size_t(shape.width) * sizeof(float));
    }
}

template <bool kLower>
void attend_rows(const AttendPart& part, const Shape& shape, const AttendState& state, Room& room) {
    Rows rows;
    const __m512 zeros = _mm512_setzero_ps();
    int64_t least = part.position[0], most = least;
    for (int n = 0; n < part.queries; ++n) {
        rows.most[n] = kNone;
        rows.total[n] = zeros;
        least = part.position[n] < least ? part.position[n] : least;
        most = part.position[n] > most ? part.position[n] : most;
    }
    for (int64_t i = 0; i < part.queries * shape.width; i += 16) _mm512_store_ps(state.sum + i, zeros);
    round_queries(part, shape.depth, room.q);
    const float scale = part.scale < 0 ? -part.scale : part.scale;
    const float unit = part.soft_cap > 0 ? 1.0f : scale; // of what the scores are in below
    for (int64_t block = part.begin / kAttendBlock * kAttendBlock; block < part.end; block += kAttendBlock) {
        const bool full = block + kAttendBlock <= least + 1 && (part.window == 0 || block + part.window > most);
        KeyRange ranges[kTileQueries], all{0, kAttendBlock};
        if (!full) all = find_ranges(part, block, ranges);
        if (all.end == 0) continue;
        const uint8_t* groups[kGroups];
        find_groups(part, block, all, shape.depth, room.staging, groups);
        multiply_keys<kLower>(room, shape, groups, room.scores);
        if (part.soft_cap > 0) cap(room.scores, part.queries, scale, part.soft_cap);
        if (full)
            for (int n = 0; n < part.queries; ++n)
                soften<false>(room.scores, room.weights, n, {}, unit * kLog2E, rows, state.sum, shape.width);
        else
            for (int n = 0; n < part.queries; ++n)
                soften<true>(room.scores, room.weights, n, ranges[n], unit * kLog2E, rows, state.sum, shape.width);
        const bool finite =
            full ? stage_values<Look::kNo>(part, block, all, shape.width, room.staging.values)
                 : stage_values<Look::kYes>(part, block, all, shape.width, room.staging.values);
        if (full || finite)
            multiply_all_values<kLower>(room, shape, reinterpret_cast<const uint8_t*>(room.staging.values),
                                        shape.width * 4, state.sum);
        else
            multiply_values_apart<kLower>(part, room, shape, block, ranges, state.sum);
    }
    for (int n = 0; n < part.queries; ++n) {
        state.most[n] = rows.most[n] * unit;
        state.total[n] = _mm512_reduce_add_ps(rows.total[n]);
    }
}

void attend(const AttendPart& part, const AttendState& state) {
    Room room;
    Shape shape;
    shape.dim = part.head_dim;
    shape.depth = (shape.dim + kTileDepth - 1) / kTileDepth * kTileDepth;
    shape.width = state.stride;
    shape.upper = part.queries < kSide ? part.queries : kSide;
    shape.lower = part.queries - shape.upper;
    configure(shape);
    if (shape.lower) attend_rows<true>(part, shape, state, room);
    else attend_rows<false>(part, shape, state, room);
    release();
}

}  // namespace

constexpr TileAttend kAmxAttend = {attend};

}  // namespace patchbay::kernels
