// Splits a matrix's rows among the threads of a pool. Used by code that reads, generates and packs weights.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/thread_pool.hpp"

namespace patchbay::weights {

// Calls work(begin, end) until all of [0, rows) is done, on all threads of the pool; null: with this thread alone.
template <class F>
void share_rows(ThreadPool* pool, int64_t rows, int64_t cols, F&& work) {
    constexpr int64_t kElements = 1 << 18;  // of a task: some hundred microseconds
    const int64_t each = std::max<int64_t>(1, kElements / std::max<int64_t>(cols, 1));
    const int64_t tasks = (rows + each - 1) / each;
    if (!pool || tasks <= 1) return work(int64_t{0}, rows);
    struct Job {
        F& work;
        int64_t rows, each;
    } job{work, rows, each};
    const auto task = [](void* arg, uint32_t index) {
        const Job& j = *static_cast<const Job*>(arg);
        j.work(index * j.each, std::min(j.rows, (index + int64_t{1}) * j.each));
    };
    pool->run(static_cast<uint32_t>(tasks), task, &job);
}

}  // namespace patchbay::weights
