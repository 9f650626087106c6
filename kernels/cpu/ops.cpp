#include <cstring>

#include "cpu/tables.hpp"

namespace patchbay::kernels {
namespace {

// f(values, n) on each row of x (T, n); work: of an element, as a multiple of an addition's.
template <class F>
void each_row(const Machine& machine, const pb_tensor& x, int64_t work, F&& f) {
    const int64_t n = x.shape[1];
    split_rows(machine.workers, x.shape[0], work * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) f(row_of(x, t), n);
    });
}

void activate(const Machine& machine, const pb_tensor& x, int64_t work,
              void (*ActivationTable::*function)(float*, int64_t)) {
    each_row(machine, x, work, table_of(machine.isa).activations.*function);
}

// function(gate) · up of rows that hold both.
template <class... Args>
void gate(const Machine& machine, const pb_tensor& out, const pb_tensor& gate_up, int64_t work,
          void (*ActivationTable::*function)(float*, const float*, const float*, int64_t, Args...), Args... args) {
    const auto row_by_row = table_of(machine.isa).activations.*function;
    const int64_t n = out.shape[1];
    split_rows(machine.workers, out.shape[0], work * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            row_by_row(row_of(out, t), row_of(gate_up, t), row_of(gate_up, t) + n, n, args...);
    });
}

}  // namespace

void rms_norm(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const float* w, float eps) {
    const RowTable& table = table_of(machine.isa).rows;
    const int64_t heads = x.rank == 3 ? x.shape[1] : 1, n = x.shape[x.rank - 1];
    split_rows(machine.workers, x.shape[0], heads * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            for (int64_t h = 0; h < heads; ++h) // of rank 2 only head 0, so its stride does not matter
                table.rms_norm(row_of(out, t) + h * out.strides[1], row_of(x, t) + h * x.strides[1], w, n, eps);
    });
}

void add_rms_norm(const Machine& machine, const pb_tensor& out, const pb_tensor& residual, const pb_tensor& x,
                  const float* w, float eps) {
    const RowTable& table = table_of(machine.isa).rows;
    const int64_t n = x.shape[1];
    split_rows(machine.workers, x.shape[0], 2 * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            table.add(row_of(residual, t), row_of(x, t), n);
            table.rms_norm(row_of(out, t), row_of(residual, t), w, n, eps);
        }
    });
}

void rope(const Machine& machine, const pb_tensor& x, const int32_t* positions, const float* inv_freq, int64_t half,
          float scale) {
    const RowTable& table = table_of(machine.isa).rows;
    split_rows(machine.workers, x.shape[0], x.shape[1] * half * 4, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            table.rope(row_of(x, t), x.shape[1], x.strides[1], float(positions[t]), inv_freq, half, scale);
    });
}

void add(const Machine& machine, const pb_tensor& a, const pb_tensor& b) {
    const RowTable& table = table_of(machine.isa).rows;
    const int64_t heads = a.rank == 3 ? a.shape[1] : 1, n = a.shape[a.rank - 1];
    split_rows(machine.workers, a.shape[0], heads * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            for (int64_t h = 0; h < heads; ++h)
                table.add(row_of(a, t) + h * a.strides[1], row_of(b, t) + h * b.strides[1], n);
    });
}

void embedding(const Machine& machine, const pb_tensor& out, const PackedMatrix& table, const int32_t* ids) {
    split_rows(machine.workers, out.shape[0], 4 * out.shape[1], [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) table.read_row(ids[t], row_of(out, t));
    });
}

void gather_rows(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const int32_t* rows) {
    const int64_t n = out.shape[1];
    split_rows(machine.workers, out.shape[0], n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            std::memcpy(row_of(out, t), row_of(x, rows[t]), size_t(n) * sizeof(float));
    });
}

void layer_norm(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const float* w, const float* b,
                float eps) {
    const RowTable& table = table_of(machine.isa).rows;
    const int64_t n = x.shape[1];
    split_rows(machine.workers, x.shape[0], 2 * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) table.layer_norm(row_of(out, t), row_of(x, t), w, b, n, eps);
    });
}

void relu(const Machine& machine, const pb_tensor& x) { activate(machine, x, 1, &ActivationTable::relu); }
void silu(const Machine& machine, const pb_tensor& x) { activate(machine, x, 4, &ActivationTable::silu); }
void gelu_tanh(const Machine& machine, const pb_tensor& x) { activate(machine, x, 4, &ActivationTable::gelu_tanh); }
void gelu_erf(const Machine& machine, const pb_tensor& x) { activate(machine, x, 6, &ActivationTable::gelu_erf); }

void silu_mul(const Machine& machine, const pb_tensor& out, const pb_tensor& gate_up) {
    gate(machine, out, gate_up, 4, &ActivationTable::silu_mul);
}
void gelu_tanh_mul(const Machine& machine, const pb_tensor& out, const pb_tensor& gate_up) {
    gate(machine, out, gate_up, 4, &ActivationTable::gelu_tanh_mul);
}
void gelu_erf_mul(const Machine& machine, const pb_tensor& out, const pb_tensor& gate_up) {
    gate(machine, out, gate_up, 6, &ActivationTable::gelu_erf_mul);
}
void swiglu_oai(const Machine& machine, const pb_tensor& out, const pb_tensor& gate_up, float alpha, float limit) {
    gate(machine, out, gate_up, 4, &ActivationTable::swiglu_oai, alpha, limit);
}

void sigmoid_mul(const Machine& machine, const pb_tensor& x, const pb_tensor& gate) {
    const Table& table = table_of(machine.isa);
    const int64_t n = x.shape[1];
    const bool one = gate.shape[1] == 1;
    split_rows(machine.workers, x.shape[0], one ? n : 4 * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            if (one) {
                float factor = 1;
                table.activations.sigmoid_mul(&factor, row_of(gate, t), 1);
                table.rows.scale(row_of(x, t), factor, n);
            } else {
                table.activations.sigmoid_mul(row_of(x, t), row_of(gate, t), n);
            }
        }
    });
}

void scale(const Machine& machine, const pb_tensor& x, float factor) {
    const RowTable& table = table_of(machine.isa).rows;
    each_row(machine, x, 1, [&](float* values, int64_t n) { table.scale(values, factor, n); });
}

void soft_cap(const Machine& machine, const pb_tensor& x, float cap) {
    const RowTable& table = table_of(machine.isa).rows;
    each_row(machine, x, 4, [&](float* values, int64_t n) { table.soft_cap(values, cap, n); });
}

void exp(Isa isa, float* out, const float* x, int64_t n) { table_of(isa).rows.exp(out, x, n); }

}  // namespace patchbay::kernels
