// linear(): how its work is dealt out. Never over K, so that a sum does not depend on who works on it.
#include "cpu/block_linear.hpp"
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
