#include <algorithm>

#include "kernels/cuda_attention.hpp"

namespace patchbay::kernels::cuda {
namespace {

constexpr uint64_t kStateBytes = 64ull << 20; // for sums of splits, at most
constexpr uint64_t kLine = 256;               // bytes; parts of a plan begin on one

uint64_t up(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

uint64_t row_bytes(const AttentionShape& shape) { // of one row of partial sums, for all KV heads
    return uint64_t(shape.kv_heads) * uint64_t(shape.head_dim + 2) * sizeof(float);
}

// Rows of a tile and the keys that any of them sees.
struct Tile {
    int32_t sequence, token, first_row, rows;
    int64_t from, to; // from: of its block
    bool few() const { return rows <= kFewRows; }
    int64_t splits() const { return (to - 1) / kSplit - from / kSplit + 1; }
};

int64_t few_workers(const AttentionGrid& grid) { return int64_t{grid.few} * grid.few_warps; }

template <class F>
void for_each_tile(const AttentionShape& shape, const AttentionBatch& batch, F&& f) {
    const int32_t group = shape.heads / shape.kv_heads;
    for (uint32_t s = 0; s < batch.seq_count; ++s) {
        const int32_t token = batch.query_starts[s], rows = (batch.query_starts[s + 1] - token) * group;
        for (int32_t first = 0; first < rows; first += kTileRows) {
            Tile tile{int32_t(s), token, first, std::min(kTileRows, rows - first), 0, 0};
            const int32_t* const positions = batch.positions + token;
            const auto [min_position, max_position] = std::minmax_element(
                positions + first / group, positions + (first + tile.rows - 1) / group + 1);
            tile.from = first_key(shape, *min_position) / kKeys * kKeys;
            tile.to = int64_t{*max_position} + 1;
            f(tile);
        }
    }
}

}  // namespace

AttentionLimits attention_limits(const AttentionShape& shape, int32_t max_seqs, int32_t max_tokens, int32_t max_seq_len,
                                 const AttentionGrid& grid) {
    const int64_t tiles = max_seqs + ceil_of(int64_t{max_tokens} * (shape.heads / shape.kv_heads), kTileRows);
    const int64_t splits = ceil_of(std::max(max_seq_len, 1), kSplit) + 1;
    AttentionLimits out;
    out.grid = grid;
    const int64_t busy = int64_t{grid.tiles} + few_workers(grid);
    out.items = int32_t(std::min<int64_t>(2 * tiles + busy, 1 << 24)); // see plan_attention
    out.merges = int32_t(std::min<int64_t>(tiles, 1 << 24));
    const int64_t rows = int64_t{max_tokens} * (shape.heads / shape.kv_heads);
    out.partial_rows = int32_t(std::min<int64_t>(rows * splits, int64_t(kStateBytes / row_bytes(shape))));
    return out;
}

AttentionLayout attention_layout(const AttentionShape& shape, const AttentionLimits& limits) {
    AttentionLayout out;
    out.items = up(sizeof(AttentionHeader));
    out.merges = out.items + up(uint64_t(limits.items) * sizeof(AttentionItem));
    out.states = out.merges + up(uint64_t(limits.merges) * sizeof(AttentionMerge));
    const uint64_t rows = uint64_t(limits.partial_rows) * uint64_t(shape.kv_heads);
    out.sums = out.states + up(rows * 2 * sizeof(float));
    out.bytes = out.sums + up(rows * uint64_t(shape.head_dim) * sizeof(float));
    return out;
}

// Splits are dealt out in runs of about so many that all that works at once is busy: blocks with the splits of tiles,
// warps with those of few rows. There are no more items than one a tile and, beyond that, those that work / kv_heads:
// runs of `each` splits or fewer number at most splits / each + 1 a tile.
bool plan_attention(const AttentionShape& shape, const AttentionBatch& batch, const AttentionLimits& limits,
                    AttentionPlan& plan) {
    plan.items.clear();
    plan.merges.clear();
    plan.partial_rows = 0;
    int64_t splits[2] = {0, 0}; // of tiles, of few rows
    for_each_tile(shape, batch, [&](const Tile& tile) { splits[tile.few()] += tile.splits(); });
    const int64_t workers[2] = {limits.grid.tiles, few_workers(limits.grid)};
    int64_t each[2];
    for (const int few : {0, 1})
        each[few] = std::max<int64_t>(ceil_of(splits[few] * shape.kv_heads, std::max<int64_t>(workers[few], 1)), 1);
    bool fits = true;
    for_each_tile(shape, batch, [&](const Tile& tile) {
        const int64_t count = tile.splits(), rows = count * tile.rows;
        const bool room = plan.partial_rows + rows <= limits.partial_rows &&
                          int64_t(plan.merges.size()) < limits.merges;
        const int64_t pieces = room ? ceil_of(count, each[tile.few()]) : 1, per_piece = ceil_of(count, pieces);
        AttentionItem item{tile.sequence, tile.token, tile.first_row, tile.rows, 0, 0, -1, 0};
        if (pieces > 1) {
            plan.merges.push_back({tile.token, tile.first_row, tile.rows, plan.partial_rows, int32_t(count), {}});
            item.partial = plan.partial_rows;
            plan.partial_rows += int32_t(rows);
        }
        const int64_t first_split = tile.from / kSplit;
        for (int64_t split = 0; split < count; split += per_piece) {
            AttentionItem piece = item;
            piece.key_from = int32_t(std::max(tile.from, (first_split + split) * kSplit));
            piece.key_to = int32_t(std::min(tile.to, (first_split + split + per_piece) * kSplit));
            if (pieces > 1) piece.partial += int32_t(split * tile.rows);
            plan.items.push_back(piece);
        }
        fits = fits && int64_t(plan.items.size()) <= limits.items;
    });
    const auto few = std::stable_partition(plan.items.begin(), plan.items.end(),
                                           [](const AttentionItem& item) { return item.rows > kFewRows; });
    plan.tiles = int32_t(few - plan.items.begin());
    return fits;
}

uint64_t page_bytes(const AttentionShape& shape) {
    const uint64_t element = shape.kv_dtype == PB_BF16 ? 2 : 4;
    return 2 * uint64_t(shape.kv_heads) * uint64_t(shape.block_size) * uint64_t(shape.head_dim) * element;
}

}  // namespace patchbay::kernels::cuda
