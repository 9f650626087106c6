// Pinned host memory that copies to and from a GPU go through, so that they are asynchronous and their source may
// change at once. For the CUDA device.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/cuda_pinned.hpp"

namespace patchbay {

class Staging {
  public:
    explicit Staging(cudaStream_t); // throws Error

    void upload(void* to, const void* from, uint64_t bytes);   // in order with the stream
    void download(void* to, const void* from, uint64_t bytes); // likewise; done on return

  private:
    static constexpr uint64_t kSlotBytes = 1 << 20;
    using Slot = kernels::cuda::PinnedMemory;
    Slot& next(); // waits until it is free

    cudaStream_t stream_;
    std::array<Slot, 16> slots_;
    size_t next_ = 0;
};

}  // namespace patchbay
