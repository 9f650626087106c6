// Recurrent layers: each sequence's rows in order, from its state on. Work is dealt out by sequences, and by channels
// or heads within one, so that a row's bits depend on the rows before it only.
#include <cmath>

#include "cpu/tables.hpp"

namespace patchbay::kernels {
namespace {

// f(sequence, its first row, its rows, its state) for each that has rows and a page, and for each of `parts`.
template <class F>
void each_state(const Machine& machine, const States& states, int64_t parts, F&& f) {
    run_tasks(machine.workers, states.sequences * parts, [&](int64_t task) {
        const int64_t s = task / parts, first = states.query_starts[s], rows = states.query_starts[s + 1] - first;
        const int32_t page = states.pages[s];
        if (page < 0 || rows == 0) return;
        auto* const at = reinterpret_cast<float*>(states.data + uint64_t(page) * states.page_stride + states.offset);
        f(first, rows, at, states.is_first_chunk[s] != 0, task % parts);
    });
}

}  // namespace

void causal_conv_silu(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const float* w,
                      const float* bias, int64_t width, const States& states) {
    constexpr int64_t kChannels = 512; // of a task
    const RecurrentTable& table = table_of(machine.isa).recurrent;
    const int64_t n = x.shape[1], parts = (n + kChannels - 1) / kChannels;
    each_state(machine, states, parts, [&](int64_t first, int64_t rows, float* tail, bool is_first, int64_t part) {
        const int64_t from = part * kChannels;
        table.conv_silu({.out = row_of(out, first) + from,
                         .out_stride = out.strides[0],
                         .x = row_of(x, first) + from,
                         .x_stride = x.strides[0],
                         .rows = rows,
                         .channels = std::min(kChannels, n - from),
                         .width = width,
                         .w = w + from * width,
                         .bias = bias ? bias + from : nullptr,
                         .tail = tail + from,
                         .tail_stride = n,
                         .is_first_chunk = is_first});
    });
}

void ssm_scan(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const pb_tensor& dt,
              const pb_tensor& b, const pb_tensor& c, const Scan& scan, const States& states) {
    constexpr int64_t kRows = 64; // whose steps are known at a time
    const RecurrentTable& table = table_of(machine.isa).recurrent;
    const int64_t heads = x.shape[1], dim = x.shape[2], n = b.shape[2], heads_a_group = heads / b.shape[1];
    each_state(machine, states, heads, [&](int64_t first, int64_t rows, float* state, bool is_first_chunk, int64_t h) {
        const float rate = -std::exp(scan.a_log[h]);
        float steps[kRows], decays[kRows];
        for (int64_t at = 0; at < rows; at += kRows) {
            const int64_t count = std::min(kRows, rows - at), from = first + at;
            for (int64_t t = 0; t < count; ++t) {
                const float v = row_of(dt, from + t)[h] + scan.dt_bias[h];
                // log(1 + e^v), which is v itself where e^v would be too large
                const float step = v > 20 ? v : std::log1p(std::exp(v));
                steps[t] = std::min(std::max(step, scan.dt_min), scan.dt_max);
                decays[t] = std::exp(rate * steps[t]);
            }
            table.scan({.out = row_of(out, from, h),
                        .out_stride = out.strides[0],
                        .x = row_of(x, from, h),
                        .x_stride = x.strides[0],
                        .b = row_of(b, from, h / heads_a_group),
                        .b_stride = b.strides[0],
                        .c = row_of(c, from, h / heads_a_group),
                        .c_stride = c.strides[0],
                        .rows = count,
                        .dim = dim,
                        .n = n,
                        .steps = steps,
                        .decays = decays,
                        .skip = scan.skip[h],
                        .state = state + h * dim * n,
                        .is_first_chunk = is_first_chunk && at == 0});
        }
    });
}

}  // namespace patchbay::kernels
