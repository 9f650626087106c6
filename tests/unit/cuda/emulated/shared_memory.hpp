// Memory that kernels and tests both reach, where kernels run on the host.
#pragma once
#include <cstdint>
#include <memory>

#include "cuda_runtime.h"

namespace patchbay::kernels::cuda {

template <class T>
using SharedAllocator = std::allocator<T>;

inline void finish() {} // until kernels that were started are done

inline uint64_t shared_bytes_of_a_multiprocessor() { return 228 << 10; } // an H200's

// Runs f() with the threads of a block in another order, where that can be had.
template <class F>
auto in_another_order(F&& f) {
    emulated::order = emulated::Order::kDescending;
    auto out = f();
    emulated::order = emulated::Order::kAscending;
    return out;
}

}  // namespace patchbay::kernels::cuda
