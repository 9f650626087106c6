// How fast the CPU kernels are: FLOP/s of linear() by rows, weight dtype and level, and attention beside the
// machine's limits of the same run.
// Compare ratios within one run only.
#include <benchmark/benchmark.h>

#include <ctime>
#include <map>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "kernels/cpu_attention.hpp"
#include "kernels/kv_codes.hpp"
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

void multiply(benchmark::State& state, const Machine& machine, const PackedMatrix& square, int64_t rows) {
    const int64_t n = square.cols();
    std::vector<float> x(static_cast<size_t>(rows * n), 1.0f), out(x.size());
    const pb_tensor x_view = tensor(x.data(), PB_F32, {rows, n}), out_view = tensor(out.data(), PB_F32, {rows, n});
    for (auto _ : state) linear(machine, out_view, x_view, square);
    state.counters["flop"] = benchmark::Counter(2.0 * double(rows * n * n),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void linear_bf16(benchmark::State& state) {
    const int64_t level = state.range(0), rows = state.range(1), n = state.range(2);
    if (missing(state, level)) return;
    ThreadPool pool(kThreads);
    const Machine machine = machine_for(pool, level);
    const std::vector<uint16_t> w(static_cast<size_t>(n * n), f32_to_bf16(0.5f));
    const PackedMatrix packed = PackedMatrix::pack(machine, PB_BF16, n, n, w.data(), nullptr);
    multiply(state, machine, packed, rows);
}
BENCHMARK(linear_bf16)
    ->ArgNames({"isa", "rows", "n"})
    ->ArgsProduct({{0, 1, 2, 3}, {1, 4, 16, 64, 512}, {256, 2048, 8192}})
    ->UseRealTime();

void linear_fp8(benchmark::State& state) {
    const int64_t level = state.range(0), rows = state.range(1), n = state.range(2), group = 128;
    if (missing(state, level)) return;
    ThreadPool pool(kThreads);
    const Machine machine = machine_for(pool, level);
    const std::vector<uint8_t> codes(static_cast<size_t>(n * n), f32_to_fp8(0.5f));
    const std::vector<float> scales(static_cast<size_t>(n * n / group), 1.0f);
    const PackedMatrix packed = PackedMatrix::pack(machine, {.dtype = PB_FP8,
                                                             .rows = n,
                                                             .cols = n,
                                                             .codes = codes.data(),
                                                             .group = group,
                                                             .scales = scales.data()});
    multiply(state, machine, packed, rows);
}
BENCHMARK(linear_fp8)
    ->ArgNames({"isa", "rows", "n"})
    ->ArgsProduct({{0, 1, 2, 3}, {1, 4, 16, 64, 512}, {256, 2048, 8192}})
    ->UseRealTime();

uint64_t now_of(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

// What the machine does in this run, which results are compared with.
struct Limits {
    double read, multiply_add; // B/s, per s
};

const Limits& limits_of(const Machine& machine) {
    static std::map<std::pair<Isa, uint32_t>, Limits> known;
    const auto [at, fresh] = known.try_emplace({machine.isa, machine.workers.threads});
    if (fresh) {
        // One thread counts its own time, so that others on the machine hardly matter.
        const auto now = machine.workers.threads == 1 ? +[](void*) { return now_of(CLOCK_THREAD_CPUTIME_ID); }
                                                   : +[](void*) { return now_of(CLOCK_MONOTONIC); };
        at->second = {measure_read(machine, now, nullptr, 256 << 20),
                      measure_multiply_add(machine, now, nullptr, PB_BF16)};
    }
    return at->second;
}

// `batch` sequences of `context` tokens, of which the last `queries` are new; head_dim 64. Layers take turns, so
// that pages come from memory as they do in a model.
struct AttentionBench {
    AttentionBench(const Machine& machine, int64_t heads, int64_t kv_heads, int64_t layers, int64_t batch,
                   int64_t queries, int64_t context, pb_dtype kv = PB_BF16)
        : attention(machine, {.heads = int32_t(heads), .kv_heads = int32_t(kv_heads), .head_dim = 64,
                              .block_size = 16, .scale = 0.125f, .kv_dtype = kv}),
          q(size_t(batch * queries * heads * 64)), out(q.size()),
          q_view(tensor(q.data(), PB_F32, {batch * queries, heads, 64})),
          out_view(tensor(out.data(), PB_F32, {batch * queries, heads, 64})) {
        const int64_t blocks = (context + 15) / 16;
        uint32_t bits = 1;
        const auto next = [&] { return float((bits = bits * 1664525u + 1013904223u) >> 8) / float(1 << 23) - 1; };
        for (float& x : q) x = next();
        table.resize(size_t(batch * blocks));
        for (size_t i = 0; i < table.size(); ++i) table[i] = int32_t(i * 5 % table.size());
        for (int64_t s = 0; s <= batch; ++s) starts.push_back(int32_t(s * queries));
        for (int64_t s = 0; s <= batch; ++s) block_starts.push_back(int32_t(s * blocks));
        for (int64_t s = 0; s < batch; ++s) {
            lens.push_back(int32_t(context));
            for (int64_t i = 0; i < queries; ++i) positions.push_back(int32_t(context - queries + i));
        }
        view = {.seq_count = uint32_t(batch), .token_count = int32_t(positions.size()),
                .query_starts = starts.data(), .seq_lens = lens.data(), .block_starts = block_starts.data(),
                .blocks = table.data(), .positions = positions.data()};
        attention.plan(view);
        const uint64_t bytes = attention.page_bytes() * table.size();
        for (int64_t l = 0; l < layers; ++l) {
            pages.push_back(allocate_aligned(bytes));
            auto* const values = reinterpret_cast<uint16_t*>(pages.back().get());
            for (uint64_t i = 0; i < bytes / 2; ++i)
                values[i] = uint16_t(0x3f00u | (i * 2654435761u >> 7 & 0x8000u) | i % 113);
        }
        if (in_codes(kv)) append(kv_heads, context);
    }
    // To all sequences and layers: rows whose scores are like those of real ones.
    void append(int64_t kv_heads, int64_t context) {
        std::vector<float> rows(size_t(context * kv_heads * 64));
        for (size_t i = 0; i < rows.size(); ++i) rows[i] = float(i * 2654435761u >> 8 & 0xffffu) / 32768 - 1;
        const pb_tensor k = tensor(rows.data(), PB_F32, {context, kv_heads, 64});
        std::vector<int64_t> slots(static_cast<size_t>(context));
        for (const AlignedBytes& layer : pages)
            for (size_t first = 0; first < table.size(); first += size_t(block_starts[1])) {
                for (size_t t = 0; t < slots.size(); ++t) slots[t] = table[first + t / 16] * 16 + int64_t(t % 16);
                const AttentionBatch batch{.token_count = int32_t(context), .slot_mapping = slots.data()};
                attention.append_kv(batch, {layer.get(), attention.page_bytes()}, k, k);
            }
    }
    void run() {
        attention.run(view, {pages[turn++ % pages.size()].get(), attention.page_bytes()}, out_view, q_view);
    }

    CpuAttention attention;
    std::vector<float> q, out;
    pb_tensor q_view, out_view;
    std::vector<int32_t> starts, lens, block_starts, table, positions;
    AttentionBatch view;
    std::vector<AlignedBytes> pages;
    size_t turn = 0;
};

using Counter = benchmark::Counter;

void attention_prefill(benchmark::State& state) {
    const int64_t level = state.range(0), heads = state.range(2), kv_heads = state.range(3), tokens = state.range(4);
    if (missing(state, level)) return;
    ThreadPool pool(uint32_t(state.range(1)));
    const Machine machine = machine_for(pool, level);
    AttentionBench bench(machine, heads, kv_heads, 1, 1, tokens, tokens);
    for (auto _ : state) bench.run();
    const double multiply_adds = double(tokens * (tokens + 1) / 2 * heads * 64 * 2);
    state.counters["flop"] = Counter(2 * multiply_adds, Counter::kIsIterationInvariantRate);
    state.counters["of_limit"] =
        Counter(multiply_adds / limits_of(machine).multiply_add, Counter::kIsIterationInvariantRate);
}
BENCHMARK(attention_prefill)
    ->ArgNames({"isa", "threads", "heads", "kv_heads", "tokens"})
    ->ArgsProduct({{2, 3}, {1}, {32}, {8}, {512, 2048}})
    ->ArgsProduct({{2, 3}, {1}, {12}, {12}, {512, 2048}});
BENCHMARK(attention_prefill)
    ->Name("attention_prefill_together")
    ->ArgNames({"isa", "threads", "heads", "kv_heads", "tokens"})
    ->ArgsProduct({{2, 3}, {kThreads}, {32}, {8}, {512, 2048}})
    ->ArgsProduct({{2, 3}, {kThreads}, {12}, {12}, {512, 2048}})
    ->UseRealTime();

void attention_decode(benchmark::State& state) {
    const int64_t level = state.range(0), batch = state.range(2), context = state.range(3);
    if (missing(state, level)) return;
    ThreadPool pool(uint32_t(state.range(1)));
    const Machine machine = machine_for(pool, level);
    AttentionBench bench(machine, 32, 8, batch > 1 ? 1 : 16, batch, 1, context);
    for (auto _ : state) bench.run();
    const double bytes = double(batch * context) * 8 * 64 * 2 * 2;
    state.counters["bytes"] = Counter(bytes, Counter::kIsIterationInvariantRate);
    state.counters["of_limit"] = Counter(bytes / limits_of(machine).read, Counter::kIsIterationInvariantRate);
}
BENCHMARK(attention_decode)
    ->ArgNames({"isa", "threads", "batch", "context"})
    ->ArgsProduct({{2, 3}, {1}, {1, 16}, {8192}});
BENCHMARK(attention_decode)
    ->Name("attention_decode_together")
    ->ArgNames({"isa", "threads", "batch", "context"})
    ->ArgsProduct({{2, 3}, {kThreads}, {1, 16}, {8192}})
    ->UseRealTime();

// By the type of KV: 0 f32, 1 bf16, 8 fp8, 5 int8, whose numbers pb_dtype gives.
void attention_decode_kv(benchmark::State& state) {
    const int64_t level = state.range(0), batch = state.range(2), context = 8192;
    if (missing(state, level)) return;
    const Machine machine{static_cast<Isa>(level), {}};
    AttentionBench bench(machine, 32, 8, batch > 1 ? 1 : 16, batch, 1, context, pb_dtype(state.range(1)));
    for (auto _ : state) bench.run();
    state.counters["keys"] = Counter(double(batch * context), Counter::kIsIterationInvariantRate);
    state.counters["bytes"] =
        Counter(double(bench.attention.page_bytes() * bench.table.size()), Counter::kIsIterationInvariantRate);
}
BENCHMARK(attention_decode_kv)
    ->ArgNames({"isa", "kv", "batch"})
    ->ArgsProduct({{1, 2, 3}, {PB_F32, PB_BF16, PB_FP8, PB_I8}, {1}});

// A prompt of 512 tokens into pages of 16, which stay in the cache.
void attention_append(benchmark::State& state) {
    const int64_t level = state.range(0), kv_heads = state.range(1), tokens = 512;
    const auto kv = pb_dtype(state.range(2));
    if (missing(state, level)) return;
    const CpuAttention attention({static_cast<Isa>(level), {}},
                                 {.heads = int32_t(kv_heads), .kv_heads = int32_t(kv_heads), .head_dim = 64,
                                  .block_size = 16, .scale = 1, .kv_dtype = kv});
    const AlignedBytes memory = allocate_aligned(attention.page_bytes() * tokens / 16);
    std::vector<float> rows(size_t(tokens * kv_heads * 64), 0.5f);
    const pb_tensor view = tensor(rows.data(), PB_F32, {tokens, kv_heads, 64});
    std::vector<int64_t> slots;
    for (int64_t t = 0; t < tokens; ++t) slots.push_back(t);
    const AttentionBatch batch{.token_count = int32_t(tokens), .slot_mapping = slots.data()};
    for (auto _ : state) attention.append_kv(batch, {memory.get(), attention.page_bytes()}, view, view);
    state.counters["tokens"] = Counter(double(tokens), Counter::kIsIterationInvariantRate);
}
BENCHMARK(attention_append)
    ->ArgNames({"isa", "kv_heads", "kv"})
    ->ArgsProduct({{2, 3}, {12}, {PB_BF16, PB_FP8, PB_I8}});

void pool_dispatch(benchmark::State& state) {
    ThreadPool pool(kThreads);
    for (auto _ : state) pool.run(2, [](void*, uint32_t) {}, nullptr);
}
BENCHMARK(pool_dispatch)->UseRealTime();

}  // namespace
}  // namespace patchbay::kernels
