// Pinned host memory that copies to and from a GPU go through, so that they are asynchronous and their source may
// change at once. For the CUDA device.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

namespace patchbay {

class Staging {
  public:
    explicit Staging(cudaStream_t); // throws Error

    void upload(void* to, const void* from, uint64_t bytes);   // in order with the stream
    void download(void* to, const void* from, uint64_t bytes); // likewise; done on return

  private:
    static constexpr uint64_t kSlotBytes = 1 << 20;
    struct Slot {
        uint8_t* memory = nullptr;
        cudaEvent_t free = nullptr; // the copy that used it last is done
        Slot() = default;
        ~Slot() {
            if (free) cudaEventDestroy(free);
            if (memory) cudaFreeHost(memory);
        }
        Slot(const Slot&) = delete;
        Slot& operator=(const Slot&) = delete;
    };
    Slot& next(); // waits until it is free

    cudaStream_t stream_;
    std::array<Slot, 16> slots_;
    size_t next_ = 0;
};

}  // namespace patchbay
