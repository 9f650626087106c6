// linear(): how its work is dealt out. Never over K, so that a sum does not depend on who works on it.
#include "cpu/dealing.hpp"
#include "cpu/quantised_matrix.hpp"
#include "cpu/tables.hpp"
#include "cpu/tile_linear.hpp"

namespace patchbay::kernels {
namespace {

constexpr int64_t kRowBlock = 96;   // rows of x that stay in the second-level cache beside a few panels
constexpr int64_t kWaitingRows = 8; // that wait for the weights rather than for arithmetic
constexpr int64_t kPanelBlock = 4;  // panels that the one-row kernel reads at once

void linear_vectors(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    const Table& table = table_of(machine.isa);
    const auto kernel = w.dtype() == PB_BF16 ? table.linear_bf16 : table.linear_f32;
    const int64_t rows = x.shape[0], panels = w.panels();
    const int64_t row_blocks = ceil_div(rows, kRowBlock), panel_blocks = ceil_div(panels, kPanelBlock);
    const int64_t weights = w.rows() * w.cols();
    const int64_t wanted = rows <= kWaitingRows ? wanted_tasks(machine.crew, kFewRows, weights)
                                                : wanted_tasks(machine.crew, kManyRows, rows * weights);
    const int64_t column_tasks = std::clamp<int64_t>(ceil_div(wanted, row_blocks), 1, panel_blocks);
    const auto part = [&](int64_t i) {
        const int64_t block = i / column_tasks, column = i % column_tasks;
        const int64_t first = panel_blocks * column / column_tasks * kPanelBlock;
        const int64_t last = std::min(panel_blocks * (column + 1) / column_tasks * kPanelBlock, panels);
        const int64_t top = block * kRowBlock;
        kernel({.x = row_of(x, top),
                .x_stride = x.strides[0],
                .rows = std::min(kRowBlock, rows - top),
                .cols = w.cols(),
                .panels = w.panel(first),
                .panel_count = last - first,
                .bias = w.bias() ? w.bias() + first * w.columns() : nullptr,
                .out = row_of(out, top) + first * w.columns(),
                .out_stride = out.strides[0],
                .width = w.rows() - first * w.columns()});
    };
    if (wanted <= 1) {
        for (int64_t i = 0; i < row_blocks * column_tasks; ++i) part(i);
    } else {
        run_tasks(machine.crew, row_blocks * column_tasks, part);
    }
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
