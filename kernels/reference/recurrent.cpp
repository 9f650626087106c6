#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference.hpp"

namespace patchbay::kernels::reference {

void causal_conv_silu(float* out, const float* x, const float* w, const float* bias, int64_t rows, int64_t n,
                      int64_t width) {
    for (int64_t t = 0; t < rows; ++t)
        for (int64_t c = 0; c < n; ++c) {
            double sum = bias ? bias[c] : 0.0;
            for (int64_t j = 0; j < width; ++j)
                if (const int64_t at = t - width + 1 + j; at >= 0) sum += double(w[c * width + j]) * x[at * n + c];
            out[t * n + c] = float(sum / (1.0 + std::exp(-sum)));
        }
}

void ssm_scan(float* out, const float* x, const float* dt, const float* b, const float* c, const float* a_log,
              const float* dt_bias, const float* skip, const ScanShape& s) {
    for (int64_t h = 0; h < s.heads; ++h) {
        std::vector<double> state(size_t(s.dim * s.n), 0.0);
        for (int64_t t = 0; t < s.rows; ++t) {
            const double v = double(dt[t * s.heads + h]) + dt_bias[h];
            const double step = std::clamp(v > 30 ? v : std::log1p(std::exp(v)), s.dt_min, s.dt_max);
            const double decay = std::exp(-std::exp(double(a_log[h])) * step);
            const int64_t group = (t * s.groups + h / (s.heads / s.groups)) * s.n;
            for (int64_t i = 0; i < s.dim; ++i) {
                const double in = x[(t * s.heads + h) * s.dim + i];
                double sum = skip[h] * in;
                for (int64_t j = 0; j < s.n; ++j) {
                    double& at = state[size_t(i * s.n + j)];
                    at = decay * at + step * in * b[group + j];
                    sum += at * c[group + j];
                }
                out[(t * s.heads + h) * s.dim + i] = float(sum);
            }
        }
    }
}

}  // namespace patchbay::kernels::reference
