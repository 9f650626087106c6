// How much of a multiplication is worth a task. For the files of linear().
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/cpu.hpp"

namespace patchbay::kernels {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Several tasks for each thread if there is enough work, so that one delayed thread does not delay all.
struct Dealing {
    int64_t max_tasks; // for each thread
    int64_t task;  // work that justifies one more task
    int64_t share; // work that justifies one more thread
};
// For few rows, which are bound by reading weights: work is elements of the weight. Many tasks: a weight is read once,
// and fastest if the threads are near one another in it. A task of 16k elements takes about as long as a dispatch, but
// two threads read twice as fast as one.
constexpr Dealing kFewRows{32, 128 * 1024, 16 * 1024};
// For many rows: work is multiply-adds. Few tasks, since each brings its rows into a cache.
constexpr Dealing kManyRows{2, 128 * 1024, 128 * 1024};
constexpr Dealing kKeptRows{8, 128 * 1024, 128 * 1024}; // where the tasks of a thread have the same rows
inline int64_t wanted_tasks(const Workers& workers, const Dealing& dealing, int64_t work) {
    const int64_t threads = workers.threads;
    if (threads <= 1) return 1;
    const int64_t least = std::clamp<int64_t>(work / dealing.share, 1, threads);
    return std::clamp<int64_t>(work / dealing.task, least, threads * dealing.max_tasks);
}

}  // namespace patchbay::kernels
