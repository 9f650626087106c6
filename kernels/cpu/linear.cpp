// linear(): how its work is dealt out. Never over K, so that a sum does not depend on who works on it.
#include "cpu/quantised_matrix.hpp"
#include "cpu/tables.hpp"

namespace patchbay::kernels {
namespace {

constexpr int64_t kRowBlock = 96;   // rows of x that stay in the second-level cache beside a few panels
constexpr int64_t kPanelBlock = 4;  // panels that the one-row kernel reads at once

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

float* row(const pb_tensor& t, int64_t i) { return static_cast<float*>(t.data) + i * t.strides[0]; }

// Several tasks a thread where there is enough work, so that a thread that is held up does not hold up all.
int64_t wanted_tasks(const Crew& crew, int64_t rows, const PackedMatrix& w) {
    constexpr int64_t kTaskWork = 128 * 1024; // multiply-adds that are worth a dispatch
    if (crew.threads <= 1) return 1;
    return std::clamp<int64_t>(rows * w.rows() * w.cols() / kTaskWork, 1, int64_t(crew.threads) * 4);
}

void linear_vectors(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    const Table& table = table_of(machine.isa);
    const auto kernel = w.dtype() == PB_BF16 ? table.linear_bf16 : table.linear_f32;
    const int64_t rows = x.shape[0], panels = w.panels();
    const int64_t row_blocks = ceil_div(rows, kRowBlock), panel_blocks = ceil_div(panels, kPanelBlock);
    const int64_t wanted = wanted_tasks(machine.crew, rows, w);
    const int64_t column_tasks = std::clamp<int64_t>(ceil_div(wanted, row_blocks), 1, panel_blocks);
    const auto part = [&](int64_t i) {
        const int64_t block = i / column_tasks, column = i % column_tasks;
        const int64_t first = panel_blocks * column / column_tasks * kPanelBlock;
        const int64_t last = std::min(panel_blocks * (column + 1) / column_tasks * kPanelBlock, panels);
        const int64_t top = block * kRowBlock;
        kernel({.x = row(x, top),
                .x_stride = x.strides[0],
                .rows = std::min(kRowBlock, rows - top),
                .cols = w.cols(),
                .panels = w.panel(first),
                .panel_count = last - first,
                .bias = w.bias() ? w.bias() + first * w.columns() : nullptr,
                .out = row(out, top) + first * w.columns(),
                .out_stride = out.strides[0],
                .width = w.rows() - first * w.columns()});
    };
    if (wanted <= 1) {
        for (int64_t i = 0; i < row_blocks * column_tasks; ++i) part(i);
    } else {
        run_tasks(machine.crew, row_blocks * column_tasks, part);
    }
}

// x is rounded to bf16 once. Then each task takes some rows that stay in its cache past some panels; the tasks of one
// range of panels come one after the other, so that threads which work on them read the panels at about one time.
void linear_tiles(const Machine& machine, const TileTable& tiles, const pb_tensor& out, const pb_tensor& x,
                  const PackedMatrix& w) {
    const int64_t rows = x.shape[0], cols = w.cols(), panels = w.panels();
    const int64_t depth = ceil_div(cols, tiles.depth) * tiles.depth;
    const int64_t fewest_blocks = ceil_div(rows, tiles.near_rows(depth));
    const int64_t block = ceil_div(ceil_div(rows, fewest_blocks), tiles.side) * tiles.side;
    const int64_t row_blocks = ceil_div(rows, block);
    // Few rows: many tasks, as each panel is read once; many rows: few, as each brings its rows into a cache.
    const int64_t most = rows > 2 * tiles.side ? int64_t(machine.crew.threads) * 4 : row_blocks * panels;
    const int64_t wanted = std::min(wanted_tasks(machine.crew, rows, w), most);
    const int64_t ranges = std::clamp<int64_t>(ceil_div(wanted, row_blocks), 1, panels), tasks = row_blocks * ranges;
    const int64_t sums = tiles.sums_floats(block, depth, ceil_div(panels, ranges));
    const int64_t sums_bytes = ceil_div(sums * int64_t(sizeof(float)), 64) * 64;

    Scratch own;
    Scratch& scratch = machine.scratch ? *machine.scratch : own;
    auto* const memory = static_cast<uint8_t*>(
        scratch.at_least(uint64_t(tasks * sums_bytes + rows * depth * int64_t(sizeof(uint16_t)))));
    auto* const rounded = reinterpret_cast<uint16_t*>(memory + tasks * sums_bytes);
    split_rows(machine.crew, ceil_div(rows, tiles.side), tiles.side * cols, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin * tiles.side; r < std::min(end * tiles.side, rows); r += tiles.side)
            tiles.round_rows(rounded + r * depth, row(x, r), x.strides[0], std::min<int64_t>(tiles.side, rows - r),
                             cols);
    });
    run_tasks(machine.crew, tasks, [&](int64_t i) {
        const int64_t range = i / row_blocks, top = i % row_blocks * block;
        const int64_t first = panels * range / ranges;
        tiles.linear({.x = rounded + top * depth,
                      .rows = std::min(block, rows - top),
                      .depth = depth,
                      .panels = w.panel(first),
                      .panel_count = panels * (range + 1) / ranges - first,
                      .bias = w.bias() ? w.bias() + first * w.columns() : nullptr,
                      .out = row(out, top) + first * w.columns(),
                      .out_stride = out.strides[0],
                      .width = w.rows() - first * w.columns(),
                      .sums = reinterpret_cast<float*>(memory + i * sums_bytes)});
    });
}

}  // namespace

void linear(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    if (x.shape[0] == 0) return;
    if (w.quantised()) return linear_quantised(machine, out, x, *w.quantised());
    const TileTable* tiles = w.dtype() == PB_BF16 ? tiles_of(machine.isa) : nullptr;
    if (tiles) linear_tiles(machine, *tiles, out, x, w);
    else linear_vectors(machine, out, x, w);
}

}  // namespace patchbay::kernels
