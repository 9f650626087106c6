// How much of a multiplication is worth a task. For the files of linear().
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/cpu.hpp"

namespace patchbay::kernels {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline float* row_of(const pb_tensor& t, int64_t i) { return static_cast<float*>(t.data) + i * t.strides[0]; }

// Several tasks a thread where there is enough work, so that a thread that is held up does not hold up all. Of few rows
// many: a weight is read once, and read fastest where the threads are near one another in it. Of many rows few: each
// task brings its rows into a cache.
constexpr int64_t kFewRowsTasks = 32, kManyRowsTasks = 2; // a thread
inline int64_t wanted_tasks(const Crew& crew, int64_t multiply_adds, int64_t tasks_a_thread) {
    constexpr int64_t kTaskWork = 128 * 1024; // multiply-adds that are worth a dispatch
    if (crew.threads <= 1) return 1;
    return std::clamp<int64_t>(multiply_adds / kTaskWork, 1, int64_t(crew.threads) * tasks_a_thread);
}

}  // namespace patchbay::kernels
