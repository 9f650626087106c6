// Memory that kernels and tests both reach, where kernels run on a GPU: pinned host memory.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <vector>

namespace patchbay::kernels::cuda {

inline void check_gpu(cudaError_t code) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "the GPU stopped: %s\n", cudaGetErrorString(code));
    std::abort(); // nothing works on it any more
}

inline std::map<size_t, std::vector<void*>>& given_back() { // by size: pinning is slow
    static std::map<size_t, std::vector<void*>> out;
    return out;
}

template <class T>
struct SharedAllocator {
    using value_type = T;
    SharedAllocator() = default;
    template <class U>
    SharedAllocator(const SharedAllocator<U>&) {}
    static size_t bytes_of(size_t count) { return (count * sizeof(T) + 4095) / 4096 * 4096; }
    T* allocate(size_t count) {
        auto& ready = given_back()[bytes_of(count)];
        void* memory = nullptr;
        if (ready.empty()) {
            check_gpu(cudaHostAlloc(&memory, bytes_of(count), cudaHostAllocDefault));
        } else {
            memory = ready.back();
            ready.pop_back();
        }
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, size_t count) { given_back()[bytes_of(count)].push_back(memory); }
    bool operator==(const SharedAllocator&) const = default;
};

inline void finish() { // until kernels that were started are done
    check_gpu(cudaGetLastError());
    check_gpu(cudaDeviceSynchronize());
}

inline uint64_t shared_bytes_of_a_multiprocessor() {
    int device = 0, bytes = 0;
    check_gpu(cudaGetDevice(&device));
    check_gpu(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    return static_cast<uint64_t>(bytes);
}

template <class F>
auto in_another_order(F&& f) { // as the GPU likes
    return f();
}

}  // namespace patchbay::kernels::cuda
