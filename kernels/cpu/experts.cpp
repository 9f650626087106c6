// Mixtures of experts: which of them a token goes to, and a linear over the rows that go to each.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cpu/tables.hpp"

namespace patchbay::kernels {
void top_k(const Machine& machine, const pb_tensor& ids, const pb_tensor& weights, const pb_tensor& logits,
           Normalise normalise) {
    const RowTable& table = table_of(machine.isa).rows;
    const int64_t k = ids.shape[1], n = logits.shape[1];
    split_rows(machine.workers, logits.shape[0], 16 * n, [&](int64_t begin, int64_t end) {
        std::vector<float> p(static_cast<size_t>(n));
        std::vector<int32_t> order(static_cast<size_t>(n));
        for (int64_t t = begin; t < end; ++t) {
            const float* x = row_of(logits, t);
            const float max_logit = *std::max_element(x, x + n);
            for (int64_t i = 0; i < n; ++i) p[size_t(i)] = x[i] - max_logit;
            table.exp(p.data(), p.data(), n);
            const float total = std::accumulate(p.begin(), p.end(), 0.0f);
            for (float& v : p) v /= total;
            std::iota(order.begin(), order.end(), 0);
            const auto greater = [&](int32_t a, int32_t b) { // by logit: what exp rounds to one value is not a tie
                return x[a] > x[b] || (!(x[b] > x[a]) && a < b);
            };
            std::partial_sort(order.begin(), order.begin() + k, order.end(), greater);
            float sum = 0;
            for (int64_t j = 0; j < k; ++j) sum += p[size_t(order[size_t(j)])];
            auto* id = static_cast<int32_t*>(ids.data) + t * ids.strides[0];
            float* weight = row_of(weights, t);
            for (int64_t j = 0; j < k; ++j) {
                id[j] = order[size_t(j)];
                const float value = p[size_t(id[j])];
                weight[j] = normalise == Normalise::kSumToOne ? value / sum : value;
            }
        }
    });
}

// The rows of each expert are copied side by side, multiplied at once, and copied to where they belong. linear() gives
// a row the same bits whatever is beside it, so it does not matter who else goes to an expert.
void expert_linear(const Machine& machine, Scratch& rows_of, const pb_tensor& out, const pb_tensor& x,
                   const PackedMatrix* const* experts, uint32_t count, const int32_t* ids) {
    const int64_t tokens = out.shape[0], k = out.shape[1], n = out.shape[2], cols = x.shape[2], pairs = tokens * k;
    std::vector<int64_t> starts(size_t(count) + 1, 0);
    for (int64_t p = 0; p < pairs; ++p) starts[size_t(ids[p]) + 1] += 1;
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<int64_t> pair_at(static_cast<size_t>(pairs)), next(starts.begin(), starts.end() - 1);
    for (int64_t p = 0; p < pairs; ++p) pair_at[size_t(next[size_t(ids[p])]++)] = p;

    const auto source = [&](int64_t p) { return row_of(x, p / k, x.shape[1] == 1 ? 0 : p % k); };
    const auto target = [&](int64_t p) { return row_of(out, p / k, p % k); };
    const auto view = [](float* data, int64_t rows, int64_t columns, int64_t stride) {
        return pb_tensor{data, PB_F32, 2, {rows, columns, 1, 1}, {stride, 1, 1, 1}, 0, 0};
    };
    constexpr int64_t kLine = 16; // floats of a cache line
    auto* const in = static_cast<float*>(rows_of.at_least(uint64_t(pairs * (cols + n) + kLine) * sizeof(float)));
    for (uint32_t e = 0; e < count; ++e) {
        const int64_t first = starts[e], rows = starts[e + 1] - first;
        if (rows == 0) continue;
        if (rows == 1) {
            const int64_t p = pair_at[size_t(first)];
            linear(machine, view(target(p), 1, n, n), view(source(p), 1, cols, cols), *experts[e]);
            continue;
        }
        float* const result = in + (rows * cols + kLine - 1) / kLine * kLine;
        split_rows(machine.workers, rows, cols, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                std::memcpy(in + r * cols, source(pair_at[size_t(first + r)]), size_t(cols) * sizeof(float));
        });
        linear(machine, view(result, rows, n, n), view(in, rows, cols, cols), *experts[e]);
        split_rows(machine.workers, rows, n, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                std::memcpy(target(pair_at[size_t(first + r)]), result + r * n, size_t(n) * sizeof(float));
        });
    }
}

void weighted_sum(const Machine& machine, const pb_tensor& out, const pb_tensor& x, const pb_tensor& weights) {
    const RowTable& table = table_of(machine.isa).rows;
    const int64_t k = x.shape[1], n = x.shape[2];
    split_rows(machine.workers, x.shape[0], 2 * k * n, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            std::fill_n(row_of(out, t), n, 0.0f);
            for (int64_t j = 0; j < k; ++j) table.add_scaled(row_of(out, t), row_of(x, t, j), row_of(weights, t)[j], n);
        }
    });
}

}  // namespace patchbay::kernels
