// The memory of a GPU, pinned memory for pages, and copies between them. For the CUDA device.
#pragma once
#include <cstdint>

#include "gpu.hpp"
#include "staging.hpp"

namespace patchbay {

class DeviceMemory { // as sdk/device.hpp wants it; all that is not noexcept throws Error
  public:
    DeviceMemory(Gpu& gpu, Staging& staging) : gpu_(gpu), staging_(staging) {}

    void* alloc(uint64_t bytes); // zeroed
    void free(void* memory) noexcept;
    void to_device(void* to, const void* from, uint64_t bytes);
    void to_host(void* to, const void* from, uint64_t bytes);
    void copy_page(void* to, const void* from, uint64_t bytes);
    void* host_alloc(uint64_t bytes); // pinned
    void host_free(void* memory) noexcept;
    void page_to_host(void* to, const void* from, uint64_t bytes);
    void page_to_device(void* to, const void* from, uint64_t bytes);

  private:
    void copy(void* to, const void* from, uint64_t bytes, cudaMemcpyKind, const char* what);

    Gpu& gpu_;
    Staging& staging_;
};

}  // namespace patchbay
