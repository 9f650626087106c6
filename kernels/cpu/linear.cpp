// linear(): how its work is dealt out. Never over K, so that a sum does not depend on who works on it.
#include "cpu/dealing.hpp"
#include "cpu/quantised_matrix.hpp"
#include "cpu/tables.hpp"
#include "cpu/tile_linear.hpp"

namespace patchbay::kernels {
namespace {

constexpr int64_t kPanelBlock = 4; // panels that the one-row kernel reads at once

// Few rows in vectors: they wait for the weights.
void linear_rows(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    const MatrixTable& table = table_of(machine.isa).matrices;
    const auto kernel = w.dtype() == PB_BF16  ? table.linear_bf16
                        : w.dtype() == PB_FP8 ? table.linear_fp8
                                              : table.linear_f32;
    const int64_t panels = w.layout().panels(), panel_blocks = ceil_div(panels, kPanelBlock);
    const int64_t tasks = std::min(wanted_tasks(machine.workers, kFewRows, w.rows() * w.cols()), panel_blocks);
    // A task a thread: equal parts, though some panels are then read by less than kPanelBlock, and what is over goes to
    // the first ones, since the caller begins before the others wake. More: whole blocks.
    const int64_t unit = tasks <= machine.workers.threads ? 1 : kPanelBlock, units = ceil_div(panels, unit);
    run_tasks(machine.workers, tasks, [&](int64_t i) {
        const int64_t first = ceil_div(units * i, tasks) * unit, column = first * w.layout().columns;
        const int64_t last = std::min(ceil_div(units * (i + 1), tasks) * unit, panels);
        kernel({.x = row_of(x, 0),
                .x_stride = x.strides[0],
                .rows = x.shape[0],
                .cols = w.cols(),
                .panels = w.panel(first),
                .panel = panel_shape(w),
                .panel_count = last - first,
                .bias = w.bias() ? w.bias() + column : nullptr,
                .out = row_of(out, 0) + column,
                .out_stride = out.strides[0],
                .width = w.rows() - column});
    });
}

// ---- many rows in vectors: blocks of rows that stay in a cache while panels go by ----

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

void linear_blocks(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    const int64_t rows = x.shape[0], parts = ceil_div(rows, kLaidRows);
    for (int64_t i = 0; i < parts; ++i) {
        const int64_t begin = rows * i / parts, end = rows * (i + 1) / parts;
        multiply_laid(machine, rows_of(out, begin, end), rows_of(x, begin, end), w);
    }
}

}  // namespace

void linear(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    if (x.shape[0] == 0) return;
    if (w.quantised()) return linear_quantised(machine, out, x, *w.quantised());
    const TileTable* tiles = w.dtype() != PB_F32 ? tiles_of(machine.isa) : nullptr;
    if (tiles) linear_tiles(machine, *tiles, out, x, w);
    else if (x.shape[0] <= kFewLinearRows) linear_rows(machine, out, x, w);
    else linear_blocks(machine, out, x, w);
}

}  // namespace patchbay::kernels
