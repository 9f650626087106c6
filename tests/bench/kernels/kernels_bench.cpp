// How fast the CPU kernels are: FLOP/s of linear() by rows, weight dtype and level, and attention by context.
// Compare ratios within one run only.
#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "base/thread_pool.hpp"
#include "kernels/cpu_attention.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels {
namespace {

constexpr uint32_t kThreads = 2;

Machine machine_for(const ThreadPool& pool, int64_t level) {
    const pb_pool& p = pool.service();
    return {static_cast<Isa>(level), {p.threads, p.ctx, p.run}};
}

bool missing(benchmark::State& state, int64_t level) {
    for (const Isa isa : available_isas())
        if (isa == static_cast<Isa>(level)) return false;
    state.SkipWithError("this machine lacks the level");
    return true;
}

void linear_bf16(benchmark::State& state) {
    const int64_t level = state.range(0), rows = state.range(1), n = state.range(2);
    if (missing(state, level)) return;
    ThreadPool pool(kThreads);
    const Machine machine = machine_for(pool, level);
    const std::vector<uint16_t> w(static_cast<size_t>(n * n), f32_to_bf16(0.5f));
    const PackedMatrix packed = PackedMatrix::pack(machine, PB_BF16, n, n, w.data(), nullptr);
    std::vector<float> x(static_cast<size_t>(rows * n), 1.0f), out(x.size());
    const pb_tensor x_view = tensor(x.data(), PB_F32, {rows, n}), out_view = tensor(out.data(), PB_F32, {rows, n});
    for (auto _ : state) linear(machine, out_view, x_view, packed);
    state.counters["flop"] = benchmark::Counter(2.0 * double(rows * n * n),
                                                benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(linear_bf16)
    ->ArgNames({"isa", "rows", "n"})
    ->ArgsProduct({{0, 1, 2, 3}, {1, 4, 16, 64, 512}, {256, 2048}})
    ->UseRealTime();

// One layer: `queries` new tokens at the end of `context`, 32 heads over 8, head_dim 64, bf16.
void attention_bf16(benchmark::State& state) {
    const int64_t level = state.range(0);
    const auto queries = static_cast<int32_t>(state.range(1)), context = static_cast<int32_t>(state.range(2));
    if (missing(state, level)) return;
    ThreadPool pool(kThreads);
    const AttentionShape shape{.heads = 32, .kv_heads = 8, .head_dim = 64, .block_size = 16,
                               .scale = 0.125f, .kv_dtype = PB_BF16};
    CpuAttention attention(machine_for(pool, level), shape);
    std::vector<int32_t> table(static_cast<size_t>(context / 16 + 1)), positions(static_cast<size_t>(queries));
    std::iota(table.begin(), table.end(), 0);
    std::iota(positions.begin(), positions.end(), context - queries);
    const std::vector<int32_t> starts = {0, queries}, lens = {context};
    std::vector<uint8_t> pages(attention.page_bytes() * table.size());
    std::vector<float> q(static_cast<size_t>(queries) * 32 * 64, 0.1f), out(q.size());
    const AttentionBatch batch{.seq_count = 1, .max_blocks = static_cast<uint32_t>(table.size()),
                               .token_count = queries, .query_starts = starts.data(), .seq_lens = lens.data(),
                               .block_tables = table.data(), .positions = positions.data()};
    attention.plan(batch);
    const pb_tensor q_view = tensor(q.data(), PB_F32, {queries, 32, 64}),
                    out_view = tensor(out.data(), PB_F32, {queries, 32, 64});
    for (auto _ : state) attention.run(batch, {pages.data(), attention.page_bytes()}, out_view, q_view);
    double pairs = 0;
    for (const int32_t position : positions) pairs += position + 1;
    state.counters["flop"] = benchmark::Counter(pairs * 32 * 64 * 4, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(attention_bf16)
    ->ArgNames({"isa", "queries", "context"})
    ->ArgsProduct({{2, 3}, {1, 128, 512}, {512, 4096}})
    ->UseRealTime();

void pool_dispatch(benchmark::State& state) {
    ThreadPool pool(kThreads);
    for (auto _ : state) pool.run(2, [](void*, uint32_t) {}, nullptr);
}
BENCHMARK(pool_dispatch)->UseRealTime();

}  // namespace
}  // namespace patchbay::kernels
