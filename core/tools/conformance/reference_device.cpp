#include "conformance/reference_device.hpp"

#include <algorithm>

#include "kernels/reference.hpp"
#include "patchbay/sdk/checked_ops.hpp"

namespace patchbay::conformance {
namespace {

namespace reference = kernels::reference;

// Rows of a tensor of rank 2 or 3, one after the other; a row has what all dimensions but the first have.
class Dense {
  public:
    explicit Dense(const pb_tensor& t) : t_(t), heads_(t.rank == 3 ? t.shape[1] : 1), n_(t.shape[t.rank - 1]) {
        values_.resize(static_cast<size_t>(rows() * width()));
        each([](float* value, float* there, int64_t n) { std::copy_n(there, n, value); });
    }
    int64_t rows() const { return t_.shape[0]; }
    int64_t width() const { return heads_ * n_; }
    int64_t heads() const { return heads_; }
    int64_t last() const { return n_; } // dimension
    float* data() { return values_.data(); }
    void write_back() {
        each([](const float* value, float* there, int64_t n) { std::copy_n(value, n, there); });
    }

  private:
    template <class F>
    void each(F&& f) {
        for (int64_t t = 0; t < rows(); ++t)
            for (int64_t h = 0; h < heads_; ++h)
                f(values_.data() + (t * heads_ + h) * n_,
                  static_cast<float*>(t_.data) + t * t_.strides[0] + h * (t_.rank == 3 ? t_.strides[1] : 0), n_);
    }
    const pb_tensor& t_;
    const int64_t heads_, n_;
    std::vector<float> values_;
};

const int32_t* indices(const pb_tensor& t, int64_t below, const char* name) {
    const auto* const all = static_cast<const int32_t*>(t.data);
    int64_t count = 1;
    for (int32_t d = 0; d < t.rank; ++d) count *= t.shape[d];
    for (int64_t i = 0; i < count; ++i)
        if (all[i] < 0 || all[i] >= below)
            throw Mismatch{std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(all[i]) +
                           ", expected 0 to " + std::to_string(below - 1)};
    return all;
}

const float* bias_of(const pb_weight& w) { return w.bias.empty() ? nullptr : w.bias.data(); }

// What a recurrent op says that its sequences are: one, which begins with this step.
void expect_whole_sequence(const pb_state& state) {
    const auto* const first = static_cast<const int32_t*>(state.is_first_chunk.data);
    if (state.pages.shape[0] != 1 || first[0] != 1) throw Mismatch{"the state is not the one that it was given"};
}

struct Kernels {
    using Device = ReferenceDevice;
    static void embedding(Device&, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
        Dense to(*out);
        const int32_t* const rows = indices(*ids, table->rows, "ids");
        reference::embedding(to.data(), table->values.data(), rows, to.rows(), table->cols);
        to.write_back();
    }
    static void linear(Device&, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
        Dense from(*x), to(*out);
        reference::linear(to.data(), from.data(), w->values.data(), bias_of(*w), from.rows(), w->rows, w->cols);
        to.write_back();
    }
    static void rms_norm(Device&, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
        Dense from(*x), to(*out);
        reference::rms_norm(to.data(), from.data(), w->values.data(), from.rows() * from.heads(), from.last(), eps);
        to.write_back();
    }
    static void layer_norm(Device&, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, const pb_weight* b,
                           float eps) {
        Dense from(*x), to(*out);
        reference::layer_norm(to.data(), from.data(), w->values.data(), b->values.data(), from.rows(), from.last(),
                              eps);
        to.write_back();
    }
    static void rope(Device&, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq, float scale) {
        Dense in_place(*x);
        reference::rope(in_place.data(), static_cast<const int32_t*>(positions->data), inv_freq->values.data(),
                        in_place.rows(), in_place.heads(), in_place.last(), 2 * inv_freq->cols, scale);
        in_place.write_back();
    }
    static void silu_mul(Device&, const pb_tensor* out, const pb_tensor* gate_up) {
        Dense from(*gate_up), to(*out);
        reference::silu_mul(to.data(), from.data(), to.rows(), to.width());
        to.write_back();
    }
    static void gelu_tanh_mul(Device&, const pb_tensor* out, const pb_tensor* gate_up) {
        Dense from(*gate_up), to(*out);
        reference::gelu_tanh_mul(to.data(), from.data(), to.rows(), to.width());
        to.write_back();
    }
    static void add(Device&, const pb_tensor* a, const pb_tensor* b) {
        Dense to(*a), from(*b);
        reference::add(to.data(), from.data(), to.rows() * to.width());
        to.write_back();
    }
    static void gather_rows(Device&, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
        Dense from(*x), to(*out);
        reference::gather_rows(to.data(), from.data(), indices(*rows, from.rows(), "rows"), to.rows(), to.width());
        to.write_back();
    }
    static void relu(Device&, const pb_tensor* x) { in_place(*x, reference::relu); }
    static void gelu_tanh(Device&, const pb_tensor* x) { in_place(*x, reference::gelu_tanh); }
    static void silu(Device&, const pb_tensor* x) { in_place(*x, reference::silu); }
    static void gelu_erf(Device&, const pb_tensor* x) { in_place(*x, reference::gelu_erf); }
    static void gelu_erf_mul(Device&, const pb_tensor* out, const pb_tensor* gate_up) {
        Dense from(*gate_up), to(*out);
        reference::gelu_erf_mul(to.data(), from.data(), to.rows(), to.width());
        to.write_back();
    }
    static void swiglu_oai(Device&, const pb_tensor* out, const pb_tensor* gate_up, float alpha, float limit) {
        Dense from(*gate_up), to(*out);
        reference::swiglu_oai(to.data(), from.data(), to.rows(), to.width(), alpha, limit);
        to.write_back();
    }
    static void sigmoid_mul(Device&, const pb_tensor* x, const pb_tensor* gate) {
        Dense to(*x), from(*gate);
        reference::sigmoid_mul(to.data(), from.data(), to.rows(), to.width(), from.width());
        to.write_back();
    }
    static void scale(Device&, const pb_tensor* x, float factor) {
        in_place(*x, [&](float* values, int64_t n) { reference::scale(values, factor, n); });
    }
    static void soft_cap(Device&, const pb_tensor* x, float cap) {
        in_place(*x, [&](float* values, int64_t n) { reference::soft_cap(values, cap, n); });
    }
    static void top_k(Device&, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits,
                      uint32_t normalise) {
        Dense from(*logits), to(*weights);
        reference::top_k(static_cast<int32_t*>(ids->data), to.data(), from.data(), from.rows(), to.width(),
                         from.width(), normalise ? 1 : 0);
        to.write_back();
    }
    static void expert_linear(Device&, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts,
                              uint32_t count, const pb_tensor* ids) {
        const int32_t* const chosen = indices(*ids, count, "ids");
        Dense from(*x), to(*out);
        const int64_t choices = out->shape[1];
        for (int64_t t = 0; t < to.rows(); ++t)
            for (int64_t j = 0; j < choices; ++j) {
                const pb_weight& w = *experts[chosen[t * choices + j]];
                const int64_t row = x->shape[1] == 1 ? t : t * choices + j;
                reference::linear(to.data() + (t * choices + j) * w.rows, from.data() + row * w.cols, w.values.data(),
                                  bias_of(w), 1, w.rows, w.cols);
            }
        to.write_back();
    }
    static void weighted_sum(Device&, const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) {
        Dense from(*x), by(*weights), to(*out);
        reference::weighted_sum(to.data(), from.data(), by.data(), to.rows(), by.width(), to.width());
        to.write_back();
    }
    static void causal_conv_silu(Device&, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                                 const pb_weight* bias, uint32_t width, const pb_state* state, uint64_t) {
        expect_whole_sequence(*state);
        Dense from(*x), to(*out);
        reference::causal_conv_silu(to.data(), from.data(), w->values.data(), bias ? bias->values.data() : nullptr,
                                    from.rows(), from.width(), width);
        to.write_back();
    }
    static void ssm_scan(Device&, const pb_tensor* out, const pb_tensor* x, const pb_tensor* dt, const pb_tensor* b,
                         const pb_tensor* c, const pb_scan* scan, const pb_state* state, uint64_t) {
        expect_whole_sequence(*state);
        Dense from(*x), steps(*dt), in(*b), read(*c), to(*out);
        reference::ssm_scan(to.data(), from.data(), steps.data(), in.data(), read.data(), scan->a_log->values.data(),
                            scan->dt_bias->values.data(), scan->skip->values.data(),
                            {from.rows(), from.heads(), from.last(), in.heads(), in.last(), scan->dt_min,
                             scan->dt_max});
        to.write_back();
    }

  private:
    template <class F>
    static void in_place(const pb_tensor& x, F&& f) {
        Dense values(x);
        f(values.data(), values.rows() * values.width());
        values.write_back();
    }
};

}  // namespace

ReferenceDevice::ReferenceDevice() : ops_(checked_ops<ReferenceDevice, Kernels>(*this)) {}

OpChecks ReferenceDevice::op_checks() const {
    return {.shape_of = [](const pb_weight* w) -> WeightShape { return {w->uses, w->rows, w->cols}; }};
}

}  // namespace patchbay::conformance
