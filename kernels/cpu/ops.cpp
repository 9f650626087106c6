#include <cstring>

#include "cpu/tables.hpp"

namespace patchbay::kernels {
namespace {

constexpr int64_t kRowBlock = 96;           // rows of x that stay in the second-level cache beside a few panels
constexpr int64_t kPanelBlock = 4;          // panels that the one-row kernel reads at once
constexpr int64_t kLinearWork = 128 * 1024; // multiply-adds that are worth a dispatch

float* row(const pb_tensor& t, int64_t i) { return static_cast<float*>(t.data) + i * t.strides[0]; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void linear(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w) {
    const Table& table = table_of(machine.isa);
    const auto kernel = w.dtype() == PB_BF16 ? table.linear_bf16 : table.linear_f32;
    const int64_t rows = x.shape[0], panels = w.panels();
    const int64_t row_blocks = ceil_div(rows, kRowBlock), panel_blocks = ceil_div(panels, kPanelBlock);
    // Several tasks a thread where there is enough work, so that a thread that is held up does not hold up all.
    const int64_t worth = rows * w.rows() * w.cols() / kLinearWork;
    const int64_t wanted = machine.crew.threads > 1 ? std::min<int64_t>(worth, int64_t(machine.crew.threads) * 4) : 1;
    const int64_t column_tasks =
        std::clamp<int64_t>(ceil_div(wanted, std::max<int64_t>(row_blocks, 1)), 1, panel_blocks);
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

void rms_norm(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const float* w, float eps) {
    const Table& table = table_of(machine.isa);
    const int64_t heads = x.rank == 3 ? x.shape[1] : 1, n = x.shape[x.rank - 1];
    split_rows(machine.crew, x.shape[0], heads * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            for (int64_t h = 0; h < heads; ++h) // of rank 2 only head 0, so its stride does not matter
                table.rms_norm(row(out, t) + h * out.strides[1], row(x, t) + h * x.strides[1], w, n, eps);
    });
}

void add_rms_norm(const Machine& machine, const pb_tensor& out, const pb_tensor& residual, const pb_tensor& x,
                  const float* w, float eps) {
    const Table& table = table_of(machine.isa);
    const int64_t n = x.shape[1];
    split_rows(machine.crew, x.shape[0], 2 * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            table.add(row(residual, t), row(x, t), n);
            table.rms_norm(row(out, t), row(residual, t), w, n, eps);
        }
    });
}

void rope(const Machine& machine, const pb_tensor& x, const int32_t* positions, const float* inv_freq, int64_t half,
          float scale) {
    const Table& table = table_of(machine.isa);
    split_rows(machine.crew, x.shape[0], x.shape[1] * half * 4, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            table.rope(row(x, t), x.shape[1], x.strides[1], float(positions[t]), inv_freq, half, scale);
    });
}

void silu_mul(const Machine& machine, const pb_tensor& out, const pb_tensor& gate_up) {
    const Table& table = table_of(machine.isa);
    const int64_t n = out.shape[1];
    split_rows(machine.crew, out.shape[0], 4 * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) table.silu_mul(row(out, t), row(gate_up, t), row(gate_up, t) + n, n);
    });
}

void add(const Machine& machine, const pb_tensor& a, const pb_tensor& b) {
    const Table& table = table_of(machine.isa);
    const int64_t heads = a.rank == 3 ? a.shape[1] : 1, n = a.shape[a.rank - 1];
    split_rows(machine.crew, a.shape[0], heads * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            for (int64_t h = 0; h < heads; ++h)
                table.add(row(a, t) + h * a.strides[1], row(b, t) + h * b.strides[1], n);
    });
}

void embedding(const Machine& machine, const pb_tensor& out, const PackedMatrix& table, const int32_t* ids) {
    split_rows(machine.crew, out.shape[0], 4 * out.shape[1], [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) table.read_row(ids[t], row(out, t));
    });
}

void gather_rows(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const int32_t* rows) {
    const int64_t n = out.shape[1];
    split_rows(machine.crew, out.shape[0], n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            std::memcpy(row(out, t), row(x, rows[t]), size_t(n) * sizeof(float));
    });
}

void exp(Isa isa, float* out, const float* x, int64_t n) { table_of(isa).exp(out, x, n); }

}  // namespace patchbay::kernels
