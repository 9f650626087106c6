#include "kernels/cpu_attention.hpp"

#include <bit>
#include <cstring>

#include "cpu/tables.hpp"
#include "kernels/kv_codes.hpp"
#include "patchbay/sdk/tensor.hpp"

static_assert(patchbay::kernels::CpuAttention::kMaxHeadDim == patchbay::kernels::kMaxHeadDim);

namespace patchbay::kernels {
namespace {

constexpr int64_t kRunsPerThread = 8; // of splits: enough that a thread that is held up does not hold up all
constexpr int64_t kInlineWork = 32 * 1024; // multiply-adds that are not worth waking a thread for

constexpr int64_t kLineBytes = 64;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Bytes of one kv head in a page; scales: of keys, followed by as many of values.
uint64_t key_bytes(const AttentionShape& s) {
    return uint64_t(round_up(s.block_size, kKeyGroup) * s.head_dim * dtype_bytes(s.kv_dtype));
}
uint64_t value_bytes(const AttentionShape& s) {
    const int64_t bytes =
        round_up(s.block_size, s.kv_dtype == PB_BF16 ? 2 : 1) * s.head_dim * dtype_bytes(s.kv_dtype);
    return uint64_t(in_codes(s.kv_dtype) ? round_up(bytes, kLineBytes) : bytes);
}
uint64_t scale_bytes(const AttentionShape& s) {
    return in_codes(s.kv_dtype) ? uint64_t(round_up(s.block_size, kKeyGroup)) * sizeof(float) : 0;
}
uint64_t head_bytes(const AttentionShape& s) { return key_bytes(s) + value_bytes(s) + 2 * scale_bytes(s); }

// Of a Table or a TileAttend.
template <class T>
auto loops_for(pb_dtype kv, const T& table) {
    return kv == PB_FP8 ? table.attend_fp8 : kv == PB_I8 ? table.attend_int8 : table.attend_bf16;
}

AttendState state_at(float* memory, int64_t queries, int64_t stride) {
    return {memory + queries * stride, memory + queries * (stride + 1), memory, stride};
}

void write_codes(const AttentionShape& s, uint8_t* head, int64_t offset, const float* k, const float* v) {
    const int64_t dim = s.head_dim;
    uint8_t codes[kMaxHeadDim];
    auto* const scales = reinterpret_cast<float*>(head + key_bytes(s) + value_bytes(s));
    scales[offset] = to_codes(s.kv_dtype, k, dim, codes);
    uint8_t* const key = head + offset / kKeyGroup * kKeyGroup * dim + offset % kKeyGroup;
    for (int64_t d = 0; d < dim; ++d) key[d * kKeyGroup] = codes[d];
    uint8_t* const value = head + key_bytes(s) + offset * dim;
    scales[round_up(s.block_size, kKeyGroup) + offset] = to_codes(s.kv_dtype, v, dim, value);
}

void write_f32(const AttentionShape& s, uint8_t* head, int64_t offset, const float* k, const float* v) {
    const int64_t dim = s.head_dim;
    float* const key = reinterpret_cast<float*>(head) + offset / kKeyGroup * kKeyGroup * dim + offset % kKeyGroup;
    for (int64_t d = 0; d < dim; ++d) key[d * kKeyGroup] = k[d];
    std::memcpy(reinterpret_cast<float*>(head + key_bytes(s)) + offset * dim, v, size_t(dim) * sizeof(float));
}

}  // namespace

struct CpuAttention::Call {
    const AttentionBatch& batch;
    const KvPages& kv;
    const pb_tensor& out;
    const pb_tensor& q;
};

CpuAttention::CpuAttention(const Machine& machine, const AttentionShape& shape, uint64_t max_partial_bytes)
    : machine_(machine), shape_(shape),
      in_tiles_(tile_attend_of(machine.isa) && shape.kv_dtype != PB_F32 && !shape.slopes), // tiles take no slopes
      queries_(in_tiles_ ? kTileQueries : kAttendQueries),
      stride_(in_tiles_ ? round_up(shape.head_dim, 16) : shape.head_dim),
      page_shift_(std::has_single_bit(uint32_t(shape.block_size)) ? std::countr_zero(uint32_t(shape.block_size)) : -1),
      partial_{max_partial_bytes, uint64_t(round_up(queries_ * (stride_ + 2), 16))} {
}

uint64_t CpuAttention::page_bytes() const {
    return uint64_t(shape_.kv_heads) * head_bytes(shape_);
}

void CpuAttention::plan(const AttentionBatch& batch) {
    tiles_.clear();
    partial_.splits.clear();
    const int32_t group = shape_.heads / shape_.kv_heads;
    int64_t work = 0;
    for (uint32_t s = 0; s < batch.seq_count; ++s) {
        const int32_t pairs = (batch.query_starts[s + 1] - batch.query_starts[s]) * group;
        for (int32_t h = 0; h < shape_.kv_heads; ++h)
            for (int32_t first = 0; first < pairs; first += queries_) {
                Tile tile{int32_t(s), h, first, std::min<int32_t>(queries_, pairs - first), 0, 0};
                find_keys(batch, tile);
                work += (tile.end - tile.begin) * tile.count * shape_.head_dim * 2;
                tiles_.push_back(tile);
            }
    }
    inline_ = machine_.workers.threads <= 1 || work < kInlineWork;
    if (inline_ || tiles_.size() >= 2 * size_t(machine_.workers.threads)) return;
    // Few tiles, such as one long sequence's next token: its splits are dealt out too.
    for (size_t i = 0; i < tiles_.size(); ++i)
        for (int64_t split = tiles_[i].begin / kSplit; split * kSplit < tiles_[i].end; ++split)
            partial_.splits.emplace_back(uint32_t(i), split);
    const uint64_t fitting = std::max<uint64_t>(2, partial_.max_bytes / (partial_.state_floats * sizeof(float)));
    partial_.round = int64_t(std::min<uint64_t>(partial_.splits.size(), fitting - 1));
    partial_.states = static_cast<float*>(partial_.scratch.at_least(partial_bytes()));
}

uint64_t CpuAttention::partial_bytes() const {
    return partial_.splits.empty() ? 0 : uint64_t(1 + partial_.round) * partial_.state_floats * sizeof(float);
}

// Calls each(i, token, head) for the tile's pairs of a row and a head.
template <class Each>
void CpuAttention::for_rows(const AttentionBatch& batch, const Tile& tile, Each&& each) const {
    const int32_t group = shape_.heads / shape_.kv_heads, first_head = tile.kv_head * group;
    int32_t token = batch.query_starts[tile.seq] + tile.first / group, head = tile.first % group;
    for (int32_t i = 0; i < tile.count; ++i) {
        each(i, token, first_head + head);
        if (++head == group) head = 0, ++token;
    }
}

// Which keys any query of the tile sees.
void CpuAttention::find_keys(const AttentionBatch& batch, Tile& tile) const {
    const int32_t group = shape_.heads / shape_.kv_heads, start = batch.query_starts[tile.seq];
    tile.begin = INT64_MAX;
    for (int32_t row = tile.first / group; row * group < tile.first + tile.count; ++row) {
        const int64_t position = batch.positions[start + row];
        tile.begin = std::min(tile.begin, first_key(shape_, position));
        tile.end = std::max(tile.end, position + 1);
    }
}

void CpuAttention::append_kv(const AttentionBatch& batch, const KvPages& kv, const pb_tensor& k,
                             const pb_tensor& v) const {
    const uint64_t key_size = key_bytes(shape_), head_size = head_bytes(shape_);
    const TileAttend* tiles = tile_attend_of(machine_.isa);
    const auto write_bf16 = tiles ? tiles->write_token : table_of(machine_.isa).attention.write_token;
    const int64_t dim = shape_.head_dim;
    const int64_t work = 4 * int64_t(shape_.kv_heads) * shape_.head_dim; // a token: strided writes are slow
    split_rows(machine_.workers, batch.token_count, work, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t slot = batch.slot_mapping[t];
            if (slot < 0) continue;
            uint8_t* page = kv.data + uint64_t(slot / shape_.block_size) * kv.page_stride;
            for (int32_t h = 0; h < shape_.kv_heads; ++h, page += head_size) {
                const int64_t offset = slot % shape_.block_size;
                const float *key = row_of(k, t, h), *value = row_of(v, t, h);
                if (in_codes(shape_.kv_dtype)) write_codes(shape_, page, offset, key, value);
                else if (shape_.kv_dtype == PB_F32) write_f32(shape_, page, offset, key, value);
                else
                    write_bf16(reinterpret_cast<uint16_t*>(page) + offset / kKeyGroup * kKeyGroup * dim +
                                   offset % kKeyGroup * 2,
                               reinterpret_cast<uint16_t*>(page + key_size) + offset / 2 * 2 * dim, int(offset % 2),
                               key, value, dim);
            }
        }
    });
}

// All but the keys.
AttendPart CpuAttention::part_of(const Call& call, const Tile& tile) const {
    AttendPart part;
    for_rows(call.batch, tile, [&](int32_t i, int32_t token, int32_t head) {
        part.q[i] = row_of(call.q, token, head);
        part.position[i] = call.batch.positions[token];
        part.slope[i] = shape_.slopes ? shape_.slopes[head] : 0;
    });
    part.queries = tile.count;
    part.block_size = shape_.block_size;
    part.page_shift = page_shift_;
    part.head_dim = shape_.head_dim;
    part.window = shape_.window;
    part.table = call.batch.table(tile.seq);
    part.keys = call.kv.data + uint64_t(tile.kv_head) * head_bytes(shape_);
    part.values = part.keys + key_bytes(shape_);
    part.key_scales = part.values + value_bytes(shape_);
    part.value_scales = part.key_scales + scale_bytes(shape_);
    part.page_stride = call.kv.page_stride;
    part.scale = shape_.scale;
    part.soft_cap = shape_.soft_cap;
    part.sloped = shape_.slopes != nullptr;
    return part;
}

void CpuAttention::attend_split(const Tile& tile, AttendPart& part, int64_t split, int64_t ahead,
                                const AttendState& state) const {
    const AttentionTable& table = table_of(machine_.isa).attention;
    part.begin = std::max(tile.begin, split * kSplit);
    part.end = std::min(tile.end, (split + 1) * kSplit);
    part.ahead = ahead;
    if (in_tiles_) loops_for(shape_.kv_dtype, *tile_attend_of(machine_.isa))(part, state);
    else if (shape_.kv_dtype == PB_F32) table.attend_f32(part, state);
    else loops_for(shape_.kv_dtype, table)(part, state);
}

// 0: of the tile that a round has left off in; then those of the round's splits.
AttendState CpuAttention::partial(int64_t i) const {
    return state_at(partial_.states + uint64_t(i) * partial_.state_floats, queries_, stride_);
}

// Merges the tile's splits in ascending order. The first is taken as it is, which is what merging it into nothing
// gives: so a row's bits do not depend on where its tile begins.
void CpuAttention::attend_tile(const Call& call, const Tile& tile) const {
    constexpr size_t kFloats = size_t(kTileQueries) * (2 + kMaxHeadDim);
    alignas(64) float first[kFloats];
    alignas(64) float one[kFloats];
    const AttendState all = state_at(first, queries_, stride_);
    const int64_t begin = tile.begin / kSplit, end = (tile.end + kSplit - 1) / kSplit;
    AttendPart part = part_of(call, tile);
    for (int64_t split = begin; split < end; ++split) {
        const AttendState state = state_at(split == begin ? first : one, queries_, stride_);
        attend_split(tile, part, split, tile.end, state);
        if (split > begin) table_of(machine_.isa).attention.merge(all, state, tile.count);
    }
    finish_tile(call, tile, all);
}

// Splits that follow one another go to one thread, which brings the next one's pages near during the last one.
void CpuAttention::attend_round(const Call& call, int64_t first, int64_t last) const {
    const int64_t splits = last - first;
    const int64_t runs = std::min<int64_t>(splits, int64_t(machine_.workers.threads) * kRunsPerThread);
    run_tasks(machine_.workers, runs, [&](int64_t run) {
        const int64_t end = first + splits * (run + 1) / runs;
        for (int64_t i = first + splits * run / runs; i < end; ++i) {
            const Tile& tile = tiles_[partial_.splits[size_t(i)].first];
            const int64_t split = partial_.splits[size_t(i)].second;
            AttendPart part = part_of(call, tile);
            attend_split(tile, part, split, std::min(tile.end, (split + end - i) * kSplit), partial(1 + i - first));
        }
    });
}

// In the order of attend_tile(), whichever rounds a tile's splits are in. `all`: of the tile that is being merged.
void CpuAttention::merge_round(const Call& call, int64_t first, int64_t last, AttendState& all) const {
    const AttentionTable& table = table_of(machine_.isa).attention;
    const auto splits = int64_t(partial_.splits.size());
    const auto tile_of = [&](int64_t i) { return partial_.splits[size_t(i)].first; };
    for (int64_t i = first; i < last; ++i) {
        const Tile& tile = tiles_[tile_of(i)];
        const AttendState state = partial(1 + i - first);
        if (i == 0 || tile_of(i - 1) != tile_of(i)) all = state;
        else table.merge(all, state, tile.count);
        if (i + 1 == splits || tile_of(i + 1) != tile_of(i)) finish_tile(call, tile, all);
    }
    const AttendState kept = partial(0); // which the next round does not overwrite
    if (last == splits || all.sum == kept.sum) return;
    std::memcpy(kept.sum, all.sum, partial_.state_floats * sizeof(float));
    all = kept;
}

void CpuAttention::finish_tile(const Call& call, const Tile& tile, const AttendState& all) const {
    if (call.kv.sinks) add_sinks(call, tile, all);
    for_rows(call.batch, tile, [&](int32_t i, int32_t token, int32_t head) {
        table_of(machine_.isa).attention.divide(row_of(call.out, token, head), all.sum + i * stride_, all.total[i],
                                                shape_.head_dim);
    });
}

// Once all keys are in: a sink has a score and no value, so it adds to what is divided by and to nothing else.
void CpuAttention::add_sinks(const Call& call, const Tile& tile, const AttendState& all) const {
    float weights[kTileQueries];
    for_rows(call.batch, tile,
             [&](int32_t i, int32_t, int32_t head) { weights[i] = call.kv.sinks[head] - all.max_score[i]; });
    table_of(machine_.isa).rows.exp(weights, weights, tile.count);
    for (int32_t i = 0; i < tile.count; ++i) all.total[i] += weights[i];
}

void CpuAttention::run(const AttentionBatch& batch, const KvPages& kv, const pb_tensor& out, const pb_tensor& q) {
    const Call call{batch, kv, out, q};
    const Workers alone;
    if (partial_.splits.empty())
        run_tasks(inline_ ? alone : machine_.workers, int64_t(tiles_.size()),
                  [&](int64_t i) { attend_tile(call, tiles_[size_t(i)]); });
    AttendState all{};
    for (auto first = int64_t(0), splits = int64_t(partial_.splits.size()); first < splits; first += partial_.round) {
        const int64_t last = std::min(splits, first + partial_.round);
        attend_round(call, first, last);
        merge_round(call, first, last, all); // alone: a few merges
    }
}

}  // namespace patchbay::kernels
