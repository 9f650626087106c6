// One GPU: its streams, memory in the order of their work, and whether a step is captured. For the CUDA device.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace patchbay {

class Gpu {
  public:
    // Throws Error: PB_UNAVAILABLE where there is no GPU that this build has code for.
    Gpu(int index, bool checks_each_op);
    ~Gpu() { use_if_it_goes(); }
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    void use() const; // makes this thread's calls go to this GPU; throws Error, as all below that are not noexcept
    void use_if_it_goes() const noexcept { cudaSetDevice(index_); }
    cudaStream_t stream() const { return stream_.get(); }
    const cudaDeviceProp& properties() const { return properties_; }
    void wait() const;                   // for all that the stream has been given
    cudaError_t latest_error() const;    // of this thread; with checks_each_op of all that the GPU has been given

    struct Memory {
        uint64_t total, free; // what the pool of this process keeps is free
    };
    Memory memory() const;
    void* take(uint64_t bytes);          // not zeroed; also while a step is captured
    void give_back(void*) noexcept;      // in order with the stream; while a step is captured, when it has been
    void fill_now(void* to, const void* from, uint64_t bytes); // while one is captured; nothing has used the memory yet

    void begin_capture();
    cudaError_t end_capture(cudaGraph_t&);
    bool is_capturing() const { return capturing_; }

  private:
    struct Destroy {
        void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
    };
    using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy>;
    static Stream new_stream();

    int index_;
    bool checks_each_op_, capturing_ = false;
    cudaDeviceProp properties_{};
    Stream stream_;
    Stream unrecorded_; // for what a captured step needs at once and is not to be part of its graph
    std::vector<void*> given_back_; // while one was captured
};

// Memory of a GPU, given back in order with its stream.
class GpuMemory {
  public:
    GpuMemory(Gpu& gpu, uint64_t bytes) : gpu_(&gpu), data_(gpu.take(bytes)), bytes_(bytes) {}
    ~GpuMemory() {
        if (data_) gpu_->give_back(data_);
    }
    GpuMemory(GpuMemory&& other) noexcept
        : gpu_(other.gpu_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    GpuMemory& operator=(GpuMemory&&) = delete;

    void* data() const { return data_; }
    uint64_t bytes() const { return bytes_; }

  private:
    Gpu* gpu_;
    void* data_;
    uint64_t bytes_;
};

// Throws Error(PB_FAILED) that says what was being done, unless `code` is success.
void check_cuda(cudaError_t code, const char* what);

}  // namespace patchbay
