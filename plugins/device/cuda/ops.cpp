// The ops table: each checks what it is given, then starts its kernel. What does not fit, or does not start, becomes
// the step's fault, and later ops of the step do nothing.
#include "cuda.hpp"
#include "patchbay/sdk/op_checks.hpp"

namespace patchbay {
namespace {

namespace cuda = kernels::cuda;

// Runs f(device, stream), unless the step is faulty, and keeps what it throws. What other plugins (attention) started
// before it is checked first, so that their faults are not blamed on this op.
template <class F>
void run(void* ctx, const char* op, F&& f) noexcept {
    auto& device = *static_cast<CudaDevice*>(ctx);
    if (device.faulty()) return;
    device.check_others(op);
    if (device.faulty()) return;
    try {
        f(device, static_cast<cuda::Stream>(device.queue()));
        device.check_launch(op);
    } catch (const Mismatch& mismatch) {
        device.set_fault(std::string(op) + ": " + mismatch.text);
    } catch (const std::exception& error) {
        device.set_fault(std::string(op) + ": " + error.what());
    }
}

const cuda::DeviceMatrix& matrix_of(const pb_weight* w, pb_weight_role role, const char* role_name) {
    if (!w || w->matrix.rows == 0 || !(w->uses & uint64_t{1} << role))
        throw Mismatch{std::string("the weight was not prepared for ") + role_name};
    return w->matrix;
}

const float* vector_of(const pb_weight* w, const char* name, int64_t size) {
    if (!w || !w->vector) throw Mismatch{std::string(name) + " was not prepared as a vector"};
    if (w->vector_size != size)
        throw Mismatch{std::string(name) + " has " + std::to_string(w->vector_size) + " values, expected " +
                       std::to_string(size)};
    return w->vector;
}

const int32_t* ints(const pb_tensor& t) { return static_cast<const int32_t*>(t.data); }

void embedding(void* ctx, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
    run(ctx, "embedding", [&](CudaDevice& device, cuda::Stream stream) {
        const cuda::DeviceMatrix& matrix = matrix_of(table, PB_WEIGHT_EMBEDDING, "embedding");
        expect_rank("ids", *ids, 1, 1);
        expect_indices("ids", *ids, {ids->shape[0]});
        expect("out", *out, device.activation_dtype(), {ids->shape[0], matrix.cols});
        cuda::embedding(stream, *out, matrix, ints(*ids), device.kernel_fault());
    });
}

// By cuBLASLt; false where it has no algorithm. With a bias, sums stay f32 until it is added: they are rounded once.
bool multiply(CudaDevice& device, cuda::Stream stream, const pb_tensor& out, const pb_tensor& x,
              const cuda::DeviceMatrix& matrix) {
    pb_tensor sums = out;
    if (matrix.bias && out.dtype != PB_F32) { // x is not in the scratch memory then: it has the dtype of out
        void* const memory = device.scratch(static_cast<uint64_t>(elements(out)) * sizeof(float));
        sums = tensor(memory, PB_F32, {out.shape[0], out.shape[1]}, out.device);
    }
    if (!device.products().multiply(sums, x, matrix)) return false;
    if (matrix.bias) cuda::add_bias(stream, out, sums, matrix.bias);
    return true;
}

// bf16 weights beside f32 activations: x is rounded to bf16, and the result is not that of f32 weights. f32 weights
// beside bf16 activations are multiplied as they are by a plain kernel, slowly, since cuBLASLt takes one dtype.
void linear(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
    run(ctx, "linear", [&](CudaDevice& device, cuda::Stream stream) {
        const cuda::DeviceMatrix& matrix = matrix_of(w, PB_WEIGHT_LINEAR, "linear");
        expect_rank("x", *x, 2, 2);
        expect("x", *x, device.activation_dtype(), {x->shape[0], matrix.cols});
        expect("out", *out, out->dtype == PB_F32 ? PB_F32 : device.activation_dtype(), {x->shape[0], matrix.rows});
        if (x->shape[0] == 0) return;
        pb_tensor in = *x;
        if (x->dtype == PB_F32 && matrix.dtype == PB_BF16) {
            void* const rounded = device.scratch(static_cast<uint64_t>(elements(*x)) * sizeof(uint16_t));
            cuda::to_bf16(stream, static_cast<uint16_t*>(rounded), *x);
            in = tensor(rounded, PB_BF16, {x->shape[0], x->shape[1]}, x->device);
        }
        if (in.dtype != matrix.dtype || !multiply(device, stream, *out, in, matrix))
            cuda::plain_linear(stream, *out, in, matrix);
    });
}

void rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
    run(ctx, "rms_norm", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("x", *x, device.activation_dtype(), 2, 3);
        expect_like("out", *out, *x);
        cuda::rms_norm(stream, *out, *x, vector_of(w, "the norm's weight", x->shape[x->rank - 1]), eps);
    });
}

void add_rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x, const pb_weight* w,
                  float eps) {
    run(ctx, "add_rms_norm", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("x", *x, device.activation_dtype(), 2, 2);
        expect_like("residual", *residual, *x);
        expect_like("out", *out, *x);
        cuda::add_rms_norm(stream, *out, *residual, *x, vector_of(w, "the norm's weight", x->shape[1]), eps);
    });
}

void layer_norm(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, const pb_weight* b,
                float eps) {
    run(ctx, "layer_norm", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("x", *x, device.activation_dtype(), 2, 2);
        expect_like("out", *out, *x);
        const int64_t n = x->shape[1];
        cuda::layer_norm(stream, *out, *x, vector_of(w, "the norm's weight", n), vector_of(b, "the norm's bias", n),
                         eps);
    });
}

void rope(void* ctx, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq, float scale) {
    run(ctx, "rope", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("x", *x, device.activation_dtype(), 3, 3);
        expect_indices("positions", *positions, {x->shape[0]});
        const int64_t half = inv_freq ? inv_freq->vector_size : 0;
        if (2 * half > x->shape[2])
            throw Mismatch{"inv_freq has " + std::to_string(half) + " values, expected at most half of head_dim " +
                           std::to_string(x->shape[2])};
        cuda::rope(stream, *x, ints(*positions), vector_of(inv_freq, "inv_freq", half), half, scale);
    });
}

using GateKernel = void (*)(cuda::Stream, const pb_tensor&, const pb_tensor&);
void gate(void* ctx, const char* op, const pb_tensor& out, const pb_tensor& gate_up, GateKernel kernel) {
    run(ctx, op, [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("out", out, device.activation_dtype(), 2, 2);
        expect("gate_up", gate_up, device.activation_dtype(), {out.shape[0], 2 * out.shape[1]});
        kernel(stream, out, gate_up);
    });
}
void silu_mul(void* ctx, const pb_tensor* out, const pb_tensor* gate_up) {
    gate(ctx, "silu_mul", *out, *gate_up, cuda::silu_mul);
}
void gelu_tanh_mul(void* ctx, const pb_tensor* out, const pb_tensor* gate_up) {
    gate(ctx, "gelu_tanh_mul", *out, *gate_up, cuda::gelu_tanh_mul);
}

void add(void* ctx, const pb_tensor* a, const pb_tensor* b) {
    run(ctx, "add", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("a", *a, device.activation_dtype(), 2, 3);
        expect_like("b", *b, *a);
        cuda::add(stream, *a, *b);
    });
}

void gather_rows(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
    run(ctx, "gather_rows", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("x", *x, device.activation_dtype(), 2, 2);
        expect_rank("rows", *rows, 1, 1);
        expect_indices("rows", *rows, {rows->shape[0]});
        expect("out", *out, device.activation_dtype(), {rows->shape[0], x->shape[1]});
        cuda::gather_rows(stream, *out, *x, ints(*rows), device.kernel_fault());
    });
}

// An op on the rows of x, in place: activations, or logits, which are f32 beside bf16 activations too.
template <class F>
void in_place(void* ctx, const char* op, const pb_tensor& x, F&& f) {
    run(ctx, op, [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("x", x, x.dtype == PB_F32 ? PB_F32 : device.activation_dtype(), 2, 2);
        f(stream, x);
    });
}
void relu(void* ctx, const pb_tensor* x) { in_place(ctx, "relu", *x, cuda::relu); }
void gelu_tanh(void* ctx, const pb_tensor* x) { in_place(ctx, "gelu_tanh", *x, cuda::gelu_tanh); }
void scale(void* ctx, const pb_tensor* x, float factor) {
    in_place(ctx, "scale", *x, [&](cuda::Stream stream, const pb_tensor& t) { cuda::scale(stream, t, factor); });
}
void soft_cap(void* ctx, const pb_tensor* x, float cap) {
    in_place(ctx, "soft_cap", *x, [&](cuda::Stream stream, const pb_tensor& t) {
        if (!(cap > 0)) throw Mismatch{"cap is " + std::to_string(cap) + ", expected more than 0"};
        cuda::soft_cap(stream, t, cap);
    });
}

void top_k(void* ctx, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits, uint32_t normalise) {
    run(ctx, "top_k", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("logits", *logits, device.activation_dtype(), 2, 2);
        expect_rank("weights", *weights, 2, 2);
        const int64_t k = weights->shape[1];
        expect("weights", *weights, PB_F32, {logits->shape[0], k});
        expect_indices("ids", *ids, {logits->shape[0], k});
        if (k < 1 || k > logits->shape[1])
            throw Mismatch{"k is " + std::to_string(k) + ", expected 1 to " + std::to_string(logits->shape[1])};
        cuda::top_k(stream, *ids, *weights, *logits, normalise != 0);
    });
}

void expert_linear(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts, uint32_t count,
                   const pb_tensor* ids) {
    run(ctx, "expert_linear", [&](CudaDevice& device, cuda::Stream stream) {
        if (count == 0) throw Mismatch{"there are no experts"};
        const cuda::DeviceMatrix& first = matrix_of(experts[0], PB_WEIGHT_LINEAR, "linear");
        for (uint32_t e = 1; e < count; ++e) {
            const cuda::DeviceMatrix& matrix = matrix_of(experts[e], PB_WEIGHT_LINEAR, "linear");
            if (matrix.rows != first.rows || matrix.cols != first.cols || matrix.dtype != first.dtype)
                throw Mismatch{"expert " + std::to_string(e) + " has another shape or dtype than expert 0"};
        }
        expect_rank("out", *out, 3, 3);
        expect_rank("x", *x, 3, 3);
        const int64_t tokens = out->shape[0], k = out->shape[1];
        expect("out", *out, device.activation_dtype(), {tokens, k, first.rows});
        expect("x", *x, device.activation_dtype(), {tokens, x->shape[1] == 1 ? 1 : k, first.cols});
        expect_indices("ids", *ids, {tokens, k});
        cuda::expert_linear(stream, *out, *x,
                            {device.expert_table(experts, count), count, first.dtype, first.rows, first.cols},
                            ints(*ids), device.kernel_fault());
    });
}

void weighted_sum(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) {
    run(ctx, "weighted_sum", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("x", *x, device.activation_dtype(), 3, 3);
        expect("out", *out, device.activation_dtype(), {x->shape[0], x->shape[2]});
        expect("weights", *weights, PB_F32, {x->shape[0], x->shape[1]});
        cuda::weighted_sum(stream, *out, *x, *weights);
    });
}

void expect_dense(const char* name, const pb_tensor& t) {
    if (t.shape[0] > 1 && t.strides[0] != t.shape[1]) throw Mismatch{std::string(name) + " is not contiguous"};
}

void take_tokens(void* ctx, const pb_tensor* ids, const pb_tensor* sampled) {
    run(ctx, "take_tokens", [&](CudaDevice& device, cuda::Stream stream) {
        expect_rank("ids", *ids, 1, 1);
        expect_indices("ids", *ids, {ids->shape[0]});
        expect_rank("sampled", *sampled, 1, 1);
        expect_indices("sampled", *sampled, {sampled->shape[0]});
        cuda::take_tokens(stream, static_cast<int32_t*>(ids->data), ids->shape[0], ints(*sampled), sampled->shape[0],
                          device.kernel_fault());
    });
}

// Gathered, then added in the order of ranks on each of them: the same bits on all, whatever else is in the batch.
// NCCL's own sum adds in an order that depends on where an element lies.
void all_reduce(void* ctx, const pb_tensor* x) {
    run(ctx, "all_reduce", [&](CudaDevice& device, cuda::Stream stream) {
        expect_activation("x", *x, device.activation_dtype(), 2, 2);
        expect_dense("x", *x);
        const int64_t count = elements(*x);
        if (count == 0) return;
        const uint32_t ranks = device.ranks().size();
        void* const gathered = device.scratch(static_cast<uint64_t>(count * dtype_bytes(x->dtype)) * ranks);
        device.ranks().all_gather(gathered, x->data, count, x->dtype);
        cuda::sum_ranks(stream, *x, gathered, ranks);
    });
}

void all_gather(void* ctx, const pb_tensor* out, const pb_tensor* x) {
    run(ctx, "all_gather", [&](CudaDevice& device, cuda::Stream stream) {
        const uint32_t ranks = device.ranks().size();
        expect_activation("x", *x, x->dtype == PB_F32 ? PB_F32 : device.activation_dtype(), 2, 2);
        expect_dense("x", *x);
        expect("out", *out, x->dtype, {x->shape[0], x->shape[1] * int64_t{ranks}});
        expect_dense("out", *out);
        const int64_t count = elements(*x);
        if (count == 0) return;
        void* const gathered = device.scratch(static_cast<uint64_t>(count * dtype_bytes(x->dtype)) * ranks);
        device.ranks().all_gather(gathered, x->data, count, x->dtype);
        cuda::lay_side_by_side(stream, *out, gathered, ranks);
    });
}

}  // namespace

void add_collectives(pb_ops& ops) {
    ops.all_reduce = all_reduce;
    ops.all_gather = all_gather;
}

pb_ops cuda_ops(CudaDevice& device) {
    pb_ops out{};
    out.struct_size = sizeof out;
    out.ctx = &device;
    out.embedding = embedding;
    out.linear = linear;
    out.rms_norm = rms_norm;
    out.add_rms_norm = add_rms_norm;
    out.rope = rope;
    out.silu_mul = silu_mul;
    out.add = add;
    out.gather_rows = gather_rows;
    out.layer_norm = layer_norm;
    out.relu = relu;
    out.gelu_tanh = gelu_tanh;
    out.gelu_tanh_mul = gelu_tanh_mul;
    out.scale = scale;
    out.soft_cap = soft_cap;
    out.top_k = top_k;
    out.expert_linear = expert_linear;
    out.weighted_sum = weighted_sum;
    out.take_tokens = take_tokens;
    return out;
}

}  // namespace patchbay
