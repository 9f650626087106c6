#include "gpu.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "kernels/cuda.hpp"
#include "patchbay/plugin.hpp"

namespace patchbay {
namespace {

constexpr int kLeastMajor = 8; // sm_80: bf16 tensor cores and asynchronous copies

[[noreturn]] void unavailable(const std::string& why) { throw Error(PB_UNAVAILABLE, why); }

std::string name_of(const cudaDeviceProp& gpu) {
    return std::string(gpu.name) + " (sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor) + ")";
}

// While a stream of this thread is captured, calls that CUDA holds to be unsafe then are allowed to other streams.
class Unrecorded {
  public:
    Unrecorded() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    ~Unrecorded() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    Unrecorded(const Unrecorded&) = delete;
    Unrecorded& operator=(const Unrecorded&) = delete;

  private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

cudaMemPool_t pool_of(int index) {
    cudaMemPool_t pool = nullptr;
    check_cuda(cudaDeviceGetDefaultMemPool(&pool, index), "the memory pool");
    return pool;
}

}  // namespace

void check_cuda(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    cudaGetLastError(); // else the next check would meet it again
    throw Error(PB_FAILED, std::string(what) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")");
}

Gpu::Gpu(int index, bool checks_each_op) : index_(index), checks_each_op_(checks_each_op) {
    int count = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess || count == 0) {
        cudaGetLastError();
        unavailable(std::string("no NVIDIA driver/GPU: ") +
                    (code == cudaSuccess ? "no device is visible" : cudaGetErrorString(code)));
    }
    if (index_ >= count)
        throw Error(PB_INVALID, "index " + std::to_string(index_) + ": " + std::to_string(count) + " GPUs are visible");
    use();
    check_cuda(cudaGetDeviceProperties(&properties_, index_), "cudaGetDeviceProperties");
    if (properties_.major < kLeastMajor) unavailable(name_of(properties_) + ", expected sm_80 or later");
    stream_ = new_stream();
    unrecorded_ = new_stream();
    uint64_t keep = UINT64_MAX; // what is freed stays with this process: steps take and give back alike
    check_cuda(cudaMemPoolSetAttribute(pool_of(index_), cudaMemPoolAttrReleaseThreshold, &keep), "the memory pool");
    // One kernel, to see that this build has code for this GPU.
    const GpuMemory probe(*this, 64);
    auto* const bytes = static_cast<uint8_t*>(probe.data());
    kernels::cuda::widen(stream(), reinterpret_cast<float*>(bytes), reinterpret_cast<const uint16_t*>(bytes + 32), 1);
    if (const cudaError_t code = cudaGetLastError(); code != cudaSuccess)
        unavailable("kernels do not run on " + name_of(properties_) + ": " + cudaGetErrorString(code));
}

Gpu::Stream Gpu::new_stream() {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    return Stream(stream);
}

void Gpu::use() const { check_cuda(cudaSetDevice(index_), "cudaSetDevice"); }

void Gpu::wait() const { check_cuda(cudaStreamSynchronize(stream()), "waiting for the GPU"); }

cudaError_t Gpu::latest_error() const {
    const cudaError_t code = cudaGetLastError();
    return code == cudaSuccess && checks_each_op_ && !capturing_ ? cudaStreamSynchronize(stream()) : code;
}

Gpu::Memory Gpu::memory() const {
    size_t free_bytes = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
    const cudaMemPool_t pool = pool_of(index_);
    uint64_t reserved = 0, used = 0;
    check_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), "the memory pool");
    check_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), "the memory pool");
    return {total, std::min<uint64_t>(total, free_bytes + (reserved > used ? reserved - used : 0))};
}

void* Gpu::take(uint64_t bytes) {
    void* memory = nullptr;
    const Unrecorded unrecorded;
    const cudaStream_t stream = capturing_ ? unrecorded_.get() : stream_.get();
    const auto allocate = [&] { return cudaMallocAsync(&memory, std::max<uint64_t>(bytes, 1), stream); };
    cudaError_t code = allocate();
    if (code == cudaErrorMemoryAllocation && !capturing_) { // what the pool keeps in pieces may be enough as a whole
        cudaGetLastError();
        wait();
        check_cuda(cudaMemPoolTrimTo(pool_of(index_), 0), "the memory pool");
        code = allocate();
    }
    if (code == cudaSuccess && capturing_) code = cudaStreamSynchronize(stream);
    if (code == cudaSuccess) return memory;
    cudaGetLastError(); // else the next check would meet it again
    throw Error(PB_FAILED, "cannot allocate " + std::to_string(bytes) + " bytes of the GPU's memory: " +
                               cudaGetErrorString(code));
}

void Gpu::give_back(void* memory) noexcept {
    use_if_it_goes();
    if (capturing_) { // else it would be the graph that frees, each time
        try {
            given_back_.push_back(memory);
        } catch (const std::bad_alloc&) { // the process's end frees it
        }
    } else if (cudaFreeAsync(memory, stream()) != cudaSuccess) {
        cudaGetLastError(); // else the next check would meet it
    }
}

void Gpu::fill_now(void* to, const void* from, uint64_t bytes) {
    const Unrecorded unrecorded;
    constexpr const char* kWhat = "a table for a captured step";
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, unrecorded_.get()), kWhat);
    check_cuda(cudaStreamSynchronize(unrecorded_.get()), kWhat);
}

void Gpu::begin_capture() {
    check_cuda(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    capturing_ = true;
}

cudaError_t Gpu::end_capture(cudaGraph_t& recorded) {
    capturing_ = false;
    const cudaError_t code = cudaStreamEndCapture(stream(), &recorded);
    if (code != cudaSuccess) cudaGetLastError();
    for (void* memory : std::exchange(given_back_, {})) give_back(memory);
    return code;
}

}  // namespace patchbay
