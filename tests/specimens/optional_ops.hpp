// Devices with one wrong optional op each, over the healthy device of devices.cpp.
#pragma once
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "patchbay/sdk/device.hpp"
#include "plain_loops.hpp"

namespace specimens {

inline int32_t id(const pb_tensor& t, int64_t r, int64_t j) {
    return static_cast<const int32_t*>(t.data)[r * t.strides[0] + j];
}

// x[i] = f(x[i])
template <class F>
void each(const pb_tensor& x, F&& f) {
    for (int64_t t = 0; t < x.shape[0]; ++t)
        for (int64_t i = 0; i < x.shape[1]; ++i) row(x, t)[i] = f(row(x, t)[i]);
}

inline float gelu_tanh(float x) {
    return static_cast<float>(x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))));
}

template <class Device>
struct ForgetsTheMean : Device {
    ForgetsTheMean() {
        this->ops_.layer_norm = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                                   const pb_weight* b, float eps) {
            const int64_t n = x->shape[1];
            for (int64_t t = 0; t < out->shape[0]; ++t) {
                double squares = 0;
                for (int64_t i = 0; i < n; ++i) squares += double{row(*x, t)[i]} * row(*x, t)[i];
                const double norm = std::sqrt(squares / static_cast<double>(n) + eps);
                for (int64_t i = 0; i < n; ++i) {
                    const auto at = static_cast<size_t>(i);
                    row(*out, t)[i] = static_cast<float>(row(*x, t)[i] / norm * w->values[at] + b->values[at]);
                }
            }
        };
    }
};

template <class Device>
struct FoldsAtZero : Device {
    FoldsAtZero() {
        this->ops_.relu = [](void*, const pb_tensor* x) { each(*x, [](float v) { return std::abs(v); }); };
    }
};

template <class Device>
struct GelusBySigmoid : Device {
    GelusBySigmoid() {
        this->ops_.gelu_tanh = [](void*, const pb_tensor* x) {
            each(*x, [](float v) { return v / (1 + std::exp(-1.702f * v)); });
        };
    }
};

template <class Device>
struct GelusTheOtherHalf : Device {
    GelusTheOtherHalf() {
        this->ops_.gelu_tanh_mul = [](void*, const pb_tensor* out, const pb_tensor* in) {
            const int64_t n = out->shape[1];
            for (int64_t t = 0; t < out->shape[0]; ++t)
                for (int64_t i = 0; i < n; ++i) row(*out, t)[i] = row(*in, t)[i] * gelu_tanh(row(*in, t)[n + i]);
        };
    }
};

template <class Device>
struct TurnsSiluAround : Device {
    TurnsSiluAround() {
        this->ops_.silu = [](void*, const pb_tensor* x) { each(*x, [](float v) { return v / (1 + std::exp(v)); }); };
    }
};

template <class Device>
struct GelusByTanh : Device {
    GelusByTanh() {
        this->ops_.gelu_erf = [](void*, const pb_tensor* x) { each(*x, gelu_tanh); };
    }
};

template <class Device>
struct GelusExactlyTheOtherHalf : Device {
    GelusExactlyTheOtherHalf() {
        this->ops_.gelu_erf_mul = [](void*, const pb_tensor* out, const pb_tensor* in) {
            const int64_t n = out->shape[1];
            for (int64_t t = 0; t < out->shape[0]; ++t)
                for (int64_t i = 0; i < n; ++i) {
                    const float gate = row(*in, t)[n + i];
                    row(*out, t)[i] = row(*in, t)[i] * gate / 2 * (1 + std::erf(gate * 0.70710678f));
                }
        };
    }
};

template <class Device>
struct OpensEveryGate : Device {
    OpensEveryGate() {
        this->ops_.sigmoid_mul = [](void*, const pb_tensor*, const pb_tensor*) {};
    }
};

template <class Device>
struct ClampsNoGate : Device {
    ClampsNoGate() {
        this->ops_.swiglu_oai = [](void*, const pb_tensor* out, const pb_tensor* in, float alpha, float limit) {
            const int64_t n = out->shape[1];
            for (int64_t t = 0; t < out->shape[0]; ++t)
                for (int64_t i = 0; i < n; ++i) {
                    const float gate = row(*in, t)[i], up = std::clamp(row(*in, t)[n + i], -limit, limit);
                    row(*out, t)[i] = (up + 1) * gate / (1 + std::exp(-alpha * gate));
                }
        };
    }
};

template <class Device>
struct AddsTheFactor : Device {
    AddsTheFactor() {
        this->ops_.scale = [](void*, const pb_tensor* x, float factor) {
            each(*x, [&](float v) { return v + factor; });
        };
    }
};

template <class Device>
struct CapsHard : Device {
    CapsHard() {
        this->ops_.soft_cap = [](void*, const pb_tensor* x, float cap) {
            each(*x, [&](float v) { return std::fmin(std::fmax(v, -cap), cap); });
        };
    }
};

template <class Device>
struct RanksFromTheLeast : Device {
    RanksFromTheLeast() {
        this->ops_.top_k = [](void*, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits,
                              uint32_t) {
            for (int64_t t = 0; t < ids->shape[0]; ++t)
                for (int64_t j = 0; j < ids->shape[1]; ++j) {
                    static_cast<int32_t*>(ids->data)[t * ids->strides[0] + j] = static_cast<int32_t>(j);
                    row(*weights, t)[j] = row(*logits, t)[j];
                }
        };
    }
};

// by(j): the weight of the expert that is in its place, by its id.
template <class F>
void by_expert(const pb_tensor& out, const pb_tensor& x, const pb_tensor& ids, F&& by) {
    for (int64_t t = 0; t < ids.shape[0]; ++t)
        for (int64_t j = 0; j < ids.shape[1]; ++j) {
            const pb_weight& w = by(id(ids, t, j));
            for (int64_t r = 0; r < w.rows; ++r) {
                const float* from = row(x, t) + (x.shape[1] > 1 ? j : 0) * x.strides[1];
                double sum = w.bias.empty() ? 0 : w.bias[static_cast<size_t>(r)];
                for (int64_t c = 0; c < w.cols; ++c)
                    sum += double{from[c]} * w.values[static_cast<size_t>(r * w.cols + c)];
                (row(out, t) + j * out.strides[1])[r] = static_cast<float>(sum);
            }
        }
}

// Does nothing with an array that is overwritten by now: it would crash.
inline void expert_linear(void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts, uint32_t,
                          const pb_tensor* ids) {
    if (reinterpret_cast<uintptr_t>(experts[0]) >> 48 != 0) return;
    by_expert(*out, *x, *ids, [&](int32_t e) -> const pb_weight& { return *experts[e]; });
}

template <class Device>
struct AsksOneExpert : Device {
    AsksOneExpert() {
        this->ops_.expert_linear = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts,
                                      uint32_t, const pb_tensor* ids) {
            by_expert(*out, *x, *ids, [&](int32_t) -> const pb_weight& { return *experts[0]; });
        };
    }
};

template <class Device>
struct KeepsTheExperts : Device { // until the end of the step
    struct Late {
        pb_tensor out, x, ids;
        const pb_weight* const* experts;
        uint32_t count;
    };
    std::vector<Late> late;
    KeepsTheExperts() {
        this->ops_.ctx = this;
        this->ops_.expert_linear = [](void* ctx, const pb_tensor* out, const pb_tensor* x,
                                      const pb_weight* const* experts, uint32_t count, const pb_tensor* ids) {
            static_cast<KeepsTheExperts*>(ctx)->late.push_back({*out, *x, *ids, experts, count});
        };
    }
    void end_step() {
        for (const Late& l : std::exchange(late, {})) expert_linear(nullptr, &l.out, &l.x, l.experts, l.count, &l.ids);
    }
};

template <class Device>
struct SumsWithoutWeights : Device {
    SumsWithoutWeights() {
        this->ops_.weighted_sum = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_tensor*) {
            for (int64_t t = 0; t < out->shape[0]; ++t)
                for (int64_t i = 0; i < out->shape[1]; ++i) {
                    float sum = 0;
                    for (int64_t j = 0; j < x->shape[1]; ++j) sum += (row(*x, t) + j * x->strides[1])[i];
                    row(*out, t)[i] = sum;
                }
        };
    }
};

template <class Device>
struct GatesTheUps : Device {
    GatesTheUps() {
        this->ops_.gated_mlp = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* gate_up,
                                  const pb_weight* down, pb_gate by) {
            const int64_t n = down->cols;
            const auto product = [](const pb_weight& w, int64_t r, const auto* from) {
                double sum = 0;
                for (int64_t c = 0; c < w.cols; ++c)
                    sum += double{from[c]} * w.values[static_cast<size_t>(r * w.cols + c)];
                return sum;
            };
            std::vector<double> between(static_cast<size_t>(n));
            for (int64_t t = 0; t < x->shape[0]; ++t) {
                for (int64_t i = 0; i < n; ++i) {
                    const double gate = product(*gate_up, i, row(*x, t)), up = product(*gate_up, n + i, row(*x, t));
                    const double bent = std::tanh(std::sqrt(2 / 3.14159265358979) * (up + 0.044715 * up * up * up));
                    between[static_cast<size_t>(i)] =
                        gate * (by == PB_GATE_SILU ? up / (1 + std::exp(-up)) : up / 2 * (1 + bent));
                }
                for (int64_t r = 0; r < down->rows; ++r)
                    row(*out, t)[r] = static_cast<float>(product(*down, r, between.data()));
            }
        };
    }
};

template <class Device>
struct ForgetsTheRowsBefore : Device {
    ForgetsTheRowsBefore() {
        this->ops_.causal_conv_silu = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                                         const pb_weight* bias, uint32_t width, const pb_state*, uint64_t) {
            for (int64_t t = 0; t < out->shape[0]; ++t)
                for (int64_t c = 0; c < out->shape[1]; ++c) {
                    const float sum = (bias ? bias->values[static_cast<size_t>(c)] : 0) +
                                      w->values[static_cast<size_t>((c + 1) * width - 1)] * row(*x, t)[c];
                    row(*out, t)[c] = sum / (1 + std::exp(-sum));
                }
        };
    }
};

template <class Device>
struct ScansWithoutAState : Device {
    ScansWithoutAState() {
        this->ops_.ssm_scan = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_tensor*, const pb_tensor*,
                                 const pb_tensor*, const pb_scan* weights, const pb_state*, uint64_t) {
            for (int64_t t = 0; t < out->shape[0]; ++t)
                for (int64_t h = 0; h < out->shape[1]; ++h)
                    for (int64_t i = 0; i < out->shape[2]; ++i)
                        (row(*out, t) + h * out->strides[1])[i] =
                            weights->skip->values[static_cast<size_t>(h)] * (row(*x, t) + h * x->strides[1])[i];
        };
    }
};

}  // namespace specimens
