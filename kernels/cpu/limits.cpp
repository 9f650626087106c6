// What the machine does at best: what kernels are compared with. Several rounds, of which the best
// counts, since others may want the machine too.
#include <cstring>
#include <memory>

#include "cpu/quantised_matrix.hpp"
#include "cpu/tables.hpp"

namespace patchbay::kernels {
namespace {

constexpr int kRounds = 8;

template <class F>
double best_rate(uint64_t (*now_ns)(void* ctx), void* ctx, F&& work) { // work() returns its amount
    double best = 0;
    for (int round = 0; round < kRounds; ++round) {
        const uint64_t start = now_ns(ctx);
        const double amount = work();
        const uint64_t took = now_ns(ctx) - start;
        if (took > 0) best = std::max(best, amount / double(took) * 1e9);
    }
    return best;
}

// Each thread reads its own part of the buffer again and again, from the cache that holds it.
double measure_reread(const Machine& machine, uint64_t (*now_ns)(void* ctx), void* ctx, int64_t part, int64_t times) {
    const int64_t tasks = machine.workers.threads;
    const AlignedBytes memory = allocate_aligned(uint64_t(tasks * part) * sizeof(float));
    auto* const from = reinterpret_cast<float*>(memory.get());
    const LimitTable& table = table_of(machine.isa).limits;
    run_tasks(machine.workers, tasks,
              [&](int64_t i) { std::memset(from + i * part, 0, size_t(part) * sizeof(float)); });
    return best_rate(now_ns, ctx, [&] {
        run_tasks(machine.workers, tasks, [&](int64_t i) {
            for (int64_t n = 0; n < times; ++n) {
                volatile float used = table.read(from + i * part, part);
                (void)used;
            }
        });
        return double(tasks * part * times) * sizeof(float);
    });
}

}  // namespace

double measure_read(const Machine& machine, uint64_t (*now_ns)(void* ctx), void* ctx, uint64_t bytes) {
    constexpr int64_t kRound = (16 << 20) / sizeof(float); // elements of a thread: take longer than starting it
    constexpr int64_t kUnit = 64;                          // elements, as read() takes them
    const auto elements = int64_t(bytes / sizeof(float));
    const int64_t part = std::max<int64_t>(elements / int64_t(machine.workers.threads) / kUnit, 1) * kUnit;
    if (part <= kRound / 2) return measure_reread(machine, now_ns, ctx, part, kRound / part);
    constexpr int64_t kPiece = 1 << 18; // elements of a task
    const int64_t pieces = std::max<int64_t>(elements / kPiece, 1);
    const AlignedBytes memory = allocate_aligned(uint64_t(pieces * kPiece) * sizeof(float));
    auto* const from = reinterpret_cast<float*>(memory.get());
    const LimitTable& table = table_of(machine.isa).limits;
    // Each thread writes first what it is likely to read: pages lie near it then.
    run_tasks(machine.workers, pieces, [&](int64_t i) { std::memset(from + i * kPiece, 0, kPiece * sizeof(float)); });
    return best_rate(now_ns, ctx, [&] {
        run_tasks(machine.workers, pieces, [&](int64_t i) {
            volatile float used = table.read(from + i * kPiece, kPiece);
            (void)used;
        });
        return double(pieces * kPiece) * sizeof(float);
    });
}

double measure_multiply_add(const Machine& machine, uint64_t (*now_ns)(void* ctx), void* ctx, pb_dtype dtype) {
    const TileTable* tiles = dtype == PB_BF16 ? tiles_of(machine.isa) : nullptr;
    const auto work = dtype == PB_I8 ? quantised_table(machine.isa, INT64_MAX, 8, 32).multiply_add
                      : tiles        ? tiles->multiply_add
                                     : table_of(machine.isa).limits.multiply_add;
    const int64_t tasks = machine.workers.threads;
    int64_t rounds = 1000;
    std::unique_ptr<int64_t[]> done(new int64_t[size_t(tasks)]());
    const auto all = [&] {
        run_tasks(machine.workers, tasks, [&](int64_t i) { done[size_t(i)] = work(rounds); });
        double sum = 0;
        for (int64_t i = 0; i < tasks; ++i) sum += double(done[size_t(i)]);
        return sum;
    };
    for (;; rounds *= 2) { // until it takes 20 ms
        const uint64_t start = now_ns(ctx);
        all();
        if (now_ns(ctx) - start > 20'000'000 || rounds > (int64_t{1} << 40)) break;
    }
    return best_rate(now_ns, ctx, all);
}

}  // namespace patchbay::kernels
