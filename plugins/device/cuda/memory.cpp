#include "memory.hpp"

#include <algorithm>

namespace patchbay {

void* DeviceMemory::alloc(uint64_t bytes) {
    gpu_.use();
    void* const memory = gpu_.take(bytes);
    check_cuda(cudaMemsetAsync(memory, 0, bytes, gpu_.stream()), "zeroing memory");
    check_cuda(cudaStreamSynchronize(gpu_.stream()), "allocating memory");
    return memory;
}

void DeviceMemory::free(void* memory) noexcept {
    if (memory) gpu_.give_back(memory);
}

void DeviceMemory::to_device(void* to, const void* from, uint64_t bytes) {
    gpu_.use();
    staging_.upload(to, from, bytes);
}

void DeviceMemory::to_host(void* to, const void* from, uint64_t bytes) {
    gpu_.use();
    staging_.download(to, from, bytes);
}

void DeviceMemory::copy(void* to, const void* from, uint64_t bytes, cudaMemcpyKind kind, const char* what) {
    gpu_.use();
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, gpu_.stream()), what);
}

void DeviceMemory::copy_page(void* to, const void* from, uint64_t bytes) {
    copy(to, from, bytes, cudaMemcpyDeviceToDevice, "a copy within the device");
}

void DeviceMemory::page_to_host(void* to, const void* from, uint64_t bytes) {
    copy(to, from, bytes, cudaMemcpyDeviceToHost, "a page to the host");
}

void DeviceMemory::page_to_device(void* to, const void* from, uint64_t bytes) {
    copy(to, from, bytes, cudaMemcpyHostToDevice, "a page from the host");
}

void* DeviceMemory::host_alloc(uint64_t bytes) {
    gpu_.use();
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, std::max<uint64_t>(bytes, 1), cudaHostAllocDefault), "pinned memory for pages");
    return memory;
}

void DeviceMemory::host_free(void* memory) noexcept {
    gpu_.use_if_it_goes();
    cudaFreeHost(memory);
}

}  // namespace patchbay
