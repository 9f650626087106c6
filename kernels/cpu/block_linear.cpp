// linear() of many rows in vectors: blocks of rows that stay in a cache while panels go by, and how they are dealt out.
#include "cpu/block_linear.hpp"

#include "cpu/dealing.hpp"

namespace patchbay::kernels {
namespace {

constexpr int64_t kNearBytes = 768 * 1024; // of laid rows, in the second-level cache beside a panel
constexpr int64_t kNearDepth = 2048;       // of K that is summed before the next rows' turn
constexpr int64_t kLeastHeight = 4;        // of a tile
constexpr int64_t kLaidRows = 1024;        // at a time: they take memory
constexpr int64_t kWaitingRows = 16;       // that wait for the weights rather than for arithmetic

// Rows in tiles of equal height, tiles in blocks.
struct Blocks {
    Blocks(int64_t rows, int64_t cols, int64_t max_height) {
        const int64_t fewest = ceil_div(rows, max_height);
        height = std::max(ceil_div(ceil_div(rows, fewest), 2) * 2, kLeastHeight);
        tiles = ceil_div(rows, height);
        const int64_t near = kNearBytes / int64_t(sizeof(float)) / (height * std::min(cols, kNearDepth));
        count = ceil_div(tiles, std::max<int64_t>(near, 1));
    }
    int64_t first_row(int64_t block) const { return tiles * block / count * height; }

    int64_t height, tiles, count;
};

pb_tensor rows_of(pb_tensor t, int64_t begin, int64_t end) {
    t.data = row_of(t, begin);
    t.shape[0] = end - begin;
    return t;
}

void multiply_laid(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    const MatrixTable& table = table_of(machine.isa).matrices;
    const auto kernel = w.dtype() == PB_BF16  ? table.block_bf16
                        : w.dtype() == PB_FP8 ? table.block_fp8
                                              : table.block_f32;
    const int64_t rows = x.shape[0], cols = w.cols(), panels = w.layout().panels();
    const Blocks blocks(rows, cols, table.block_rows);

    Scratch own;
    Scratch& scratch = machine.scratch ? *machine.scratch : own;
    const int64_t tile_floats = blocks.height * cols;
    auto* const laid = static_cast<float*>(scratch.at_least(uint64_t(blocks.tiles * tile_floats) * sizeof(float)));
    split_rows(machine.workers, blocks.tiles, tile_floats, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t row = t * blocks.height;
            table.lay_rows(laid + t * tile_floats, row_of(x, row), x.strides[0], std::min(blocks.height, rows - row),
                           cols, blocks.height);
        }
    });

    const int64_t weights = w.rows() * cols;
    const int64_t wanted = rows <= kWaitingRows ? wanted_tasks(machine.workers, kFewRows, weights)
                                                : wanted_tasks(machine.workers, kKeptRows, rows * weights);
    const int64_t ranges = std::clamp<int64_t>(ceil_div(wanted, blocks.count), 1, panels);
    const auto task = [&](int64_t i) {
        const int64_t block = i / ranges, range = i % ranges;
        const int64_t top = blocks.first_row(block), end = std::min(blocks.first_row(block + 1), rows);
        const int64_t first = panels * range / ranges, column = first * w.layout().columns;
        LinearBlock part{.x = laid + top * cols,
                         .height = blocks.height,
                         .rows = end - top,
                         .cols = cols,
                         .begin = 0,
                         .end = 0,
                         .panels = w.panel(first),
                         .panel = panel_shape(w),
                         .panel_count = panels * (range + 1) / ranges - first,
                         .bias = w.bias() ? w.bias() + column : nullptr,
                         .out = row_of(out, top) + column,
                         .out_stride = out.strides[0],
                         .width = w.rows() - column};
        for (; part.begin < cols; part.begin = part.end) {
            part.end = std::min(part.begin + kNearDepth, cols);
            kernel(part);
        }
    };
    run_tasks(wanted > 1 ? machine.workers : Workers{}, blocks.count * ranges, task);
}

}  // namespace

void linear_blocks(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    const int64_t rows = x.shape[0], parts = ceil_div(rows, kLaidRows);
    for (int64_t i = 0; i < parts; ++i) {
        const int64_t begin = rows * i / parts, end = rows * (i + 1) / parts;
        multiply_laid(machine, rows_of(out, begin, end), rows_of(x, begin, end), w);
    }
}

}  // namespace patchbay::kernels
