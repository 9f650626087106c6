// Pinned host memory, from which a GPU copies while the host goes on. For the device `cuda` and its attention.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace patchbay::kernels::cuda {

struct PinnedMemory {
    uint8_t* memory = nullptr;
    cudaEvent_t free = nullptr; // the copy that used it last is done

    PinnedMemory() = default;
    ~PinnedMemory() {
        if (free) cudaEventDestroy(free);
        if (memory) cudaFreeHost(memory);
    }
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;

    // Once. After a failure the destructor frees what there is.
    cudaError_t allocate(uint64_t bytes) {
        void* at = nullptr;
        const cudaError_t code = cudaHostAlloc(&at, bytes, cudaHostAllocDefault);
        if (code != cudaSuccess) return code;
        memory = static_cast<uint8_t*>(at);
        return cudaEventCreateWithFlags(&free, cudaEventDisableTiming);
    }
};

}  // namespace patchbay::kernels::cuda
