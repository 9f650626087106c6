// The ops table: each checks what it is given, then calls its kernel. What does not fit becomes the step's fault, and
// the ops after it do nothing.
#include "cpu.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

std::string shape_text(const pb_tensor& t) {
    std::string out = std::string(dtype_name(t.dtype)) + " (";
    for (int32_t i = 0; i < t.rank && i < PB_MAX_RANK; ++i) out += (i ? ", " : "") + std::to_string(t.shape[i]);
    return out + ")";
}

struct Mismatch {
    std::string text; // "x is f32 (3, 8), expected f32 (3, 16)"
};

void expect(const char* name, const pb_tensor& t, pb_dtype dtype, std::initializer_list<int64_t> shape) {
    bool fits = t.dtype == dtype && t.rank == static_cast<int32_t>(shape.size());
    int64_t count = 1;
    for (size_t i = 0; fits && i < shape.size(); ++i) {
        fits = t.shape[i] == shape.begin()[i];
        count *= t.shape[i];
    }
    if (fits && t.strides[t.rank - 1] == 1 && (t.data || count == 0)) return;
    std::string wanted = std::string(dtype_name(dtype)) + " (";
    for (size_t i = 0; i < shape.size(); ++i) wanted += (i ? ", " : "") + std::to_string(shape.begin()[i]);
    std::string got = shape_text(t);
    if (fits) got += t.data ? " with inner stride " + std::to_string(t.strides[t.rank - 1]) : " without data";
    throw Mismatch{std::string(name) + " is " + got + ", expected " + wanted + ")"};
}

void expect_rank(const char* name, const pb_tensor& t, int32_t least, int32_t most) {
    if (t.rank >= least && t.rank <= most) return;
    throw Mismatch{std::string(name) + " has rank " + std::to_string(t.rank) + ", expected " + std::to_string(least) +
                   (most > least ? " to " + std::to_string(most) : "")};
}

// x as it is, but of this dtype with unit inner stride; for tensors that give an op its sizes.
void expect_f32(const char* name, const pb_tensor& t, int32_t least_rank, int32_t most_rank) {
    expect_rank(name, t, least_rank, most_rank);
    if (t.rank == 3) expect(name, t, PB_F32, {t.shape[0], t.shape[1], t.shape[2]});
    else expect(name, t, PB_F32, {t.shape[0], t.shape[1]});
}

void expect_like(const char* name, const pb_tensor& t, const pb_tensor& model) {
    if (model.rank == 3) expect(name, t, PB_F32, {model.shape[0], model.shape[1], model.shape[2]});
    else expect(name, t, PB_F32, {model.shape[0], model.shape[1]});
}

const kernels::PackedMatrix& matrix_of(const pb_weight* w, pb_weight_role role, const char* role_name) {
    if (!w || !w->matrix || !(w->uses & uint64_t{1} << role))
        throw Mismatch{std::string("the weight was not prepared for ") + role_name};
    return *w->matrix;
}

const float* vector_of(const pb_weight* w, const char* name, int64_t size) {
    if (!w || w->vector.empty()) throw Mismatch{std::string(name) + " was not prepared as a vector"};
    if (static_cast<int64_t>(w->vector.size()) != size)
        throw Mismatch{std::string(name) + " has " + std::to_string(w->vector.size()) + " values, expected " +
                       std::to_string(size)};
    return w->vector.data();
}

const int32_t* indices(const char* name, const pb_tensor& t, int64_t count, int64_t limit) {
    expect(name, t, PB_I32, {count});
    const auto* data = static_cast<const int32_t*>(t.data);
    for (int64_t i = 0; i < count; ++i)
        if (data[i] < 0 || data[i] >= limit)
            throw Mismatch{std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(data[i]) +
                           ", expected 0 to " + std::to_string(limit - 1)};
    return data;
}

// Runs f(machine) unless the step is faulty, and keeps what it throws.
template <class F>
void run(void* ctx, const char* op, F&& f) noexcept {
    auto& device = *static_cast<CpuDevice*>(ctx);
    if (device.faulty()) return;
    try {
        f(device.machine());
    } catch (const Mismatch& mismatch) {
        device.set_fault(std::string(op) + ": " + mismatch.text);
    } catch (const std::exception& error) {
        device.set_fault(std::string(op) + ": " + error.what());
    }
}

void embedding(void* ctx, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
    run(ctx, "embedding", [&](const kernels::Machine& machine) {
        const kernels::PackedMatrix& matrix = matrix_of(table, PB_WEIGHT_EMBEDDING, "embedding");
        expect_rank("ids", *ids, 1, 1);
        expect("out", *out, PB_F32, {ids->shape[0], matrix.cols()});
        kernels::embedding(machine, *out, matrix, indices("ids", *ids, ids->shape[0], matrix.rows()));
    });
}

void linear(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
    run(ctx, "linear", [&](const kernels::Machine& machine) {
        const kernels::PackedMatrix& matrix = matrix_of(w, PB_WEIGHT_LINEAR, "linear");
        expect_rank("x", *x, 2, 2);
        expect("x", *x, PB_F32, {x->shape[0], matrix.cols()});
        expect("out", *out, PB_F32, {x->shape[0], matrix.rows()});
        kernels::linear(machine, *out, *x, matrix);
    });
}

void rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
    run(ctx, "rms_norm", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 2, 3);
        expect_like("out", *out, *x);
        kernels::rms_norm(machine, *out, *x, vector_of(w, "the norm's weight", x->shape[x->rank - 1]), eps);
    });
}

void add_rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x, const pb_weight* w,
                  float eps) {
    run(ctx, "add_rms_norm", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 2, 2);
        expect_like("residual", *residual, *x);
        expect_like("out", *out, *x);
        kernels::add_rms_norm(machine, *out, *residual, *x, vector_of(w, "the norm's weight", x->shape[1]), eps);
    });
}

void rope(void* ctx, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq, float scale) {
    run(ctx, "rope", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 3, 3);
        expect("positions", *positions, PB_I32, {x->shape[0]});
        const int64_t half = inv_freq ? static_cast<int64_t>(inv_freq->vector.size()) : 0;
        if (2 * half > x->shape[2])
            throw Mismatch{"inv_freq has " + std::to_string(half) + " values, expected at most half of head_dim " +
                           std::to_string(x->shape[2])};
        kernels::rope(machine, *x, static_cast<const int32_t*>(positions->data), vector_of(inv_freq, "inv_freq", half),
                      half, scale);
    });
}

void silu_mul(void* ctx, const pb_tensor* out, const pb_tensor* gate_up) {
    run(ctx, "silu_mul", [&](const kernels::Machine& machine) {
        expect_f32("out", *out, 2, 2);
        expect("gate_up", *gate_up, PB_F32, {out->shape[0], 2 * out->shape[1]});
        kernels::silu_mul(machine, *out, *gate_up);
    });
}

void add(void* ctx, const pb_tensor* a, const pb_tensor* b) {
    run(ctx, "add", [&](const kernels::Machine& machine) {
        expect_f32("a", *a, 2, 3);
        expect_like("b", *b, *a);
        kernels::add(machine, *a, *b);
    });
}

void gather_rows(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
    run(ctx, "gather_rows", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 2, 2);
        expect_rank("rows", *rows, 1, 1);
        expect("out", *out, PB_F32, {rows->shape[0], x->shape[1]});
        kernels::gather_rows(machine, *out, *x, indices("rows", *rows, rows->shape[0], x->shape[0]));
    });
}

}  // namespace

pb_ops cpu_ops(CpuDevice& device) {
    return {sizeof(pb_ops), 0,    &device,  embedding, linear,      rms_norm,
            add_rms_norm,   rope, silu_mul, add,       gather_rows, nullptr /* one rank: nothing to reduce */};
}

}  // namespace patchbay
