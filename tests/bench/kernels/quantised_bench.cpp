// linear() of quantised weights: bytes a second where few rows stream them, operations a second of many. A run goes
// through 128 or 256 MiB of codes, which large caches may hold; compare ratios within one run only.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/thread_pool.hpp"
#include "kernels/cpu.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels {
namespace {

void linear_quantised(benchmark::State& state) {
    const auto level = static_cast<Isa>(state.range(0));
    const int64_t bits = state.range(1), group = state.range(2), rows = state.range(3), n = 4096, matrices = 16;
    const int64_t stored_group = group == 0 ? 128 : group; // 0: a scale for each row
    if (level > available_isas().back()) return state.SkipWithError("this machine lacks the level");
    ThreadPool pool(2);
    const pb_pool& p = pool.service();
    const Machine machine{level, {p.threads, p.ctx, p.run}};
    const std::vector<uint8_t> codes(static_cast<size_t>(n * n * bits / 8), 0x5a);
    std::vector<float> scales(static_cast<size_t>(n * n / stored_group), 0.01f);
    if (group != 0) scales[0] = 0.02f; // or all of the first row would have one
    std::vector<PackedMatrix> weights;
    for (int64_t i = 0; i < matrices; ++i)
        weights.push_back(PackedMatrix::pack(machine, {.dtype = bits == 8 ? PB_I8 : PB_I4,
                                                       .rows = n,
                                                       .cols = n,
                                                       .codes = codes.data(),
                                                       .group = stored_group,
                                                       .scales = scales.data()}));
    std::vector<float> x(static_cast<size_t>(rows * n), 1.0f), out(x.size());
    const pb_tensor x_view = tensor(x.data(), PB_F32, {rows, n}), out_view = tensor(out.data(), PB_F32, {rows, n});
    for (auto _ : state)
        for (const PackedMatrix& w : weights) linear(machine, out_view, x_view, w);
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    state.counters["flop"] = benchmark::Counter(2.0 * double(rows * n * n * matrices), rate);
    state.counters["bytes"] = benchmark::Counter(double(weights[0].bytes()) * double(matrices), rate);
}
BENCHMARK(linear_quantised)
    ->ArgNames({"isa", "bits", "group", "rows"})
    ->ArgsProduct({{0, 1, 2, 3}, {8, 4}, {0, 32, 128}, {1, 4, 16, 512}})
    ->UseRealTime();

}  // namespace
}  // namespace patchbay::kernels
