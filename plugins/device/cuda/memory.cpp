#include <algorithm>
#include <cstring>

#include "cuda.hpp"

namespace patchbay {

void check_cuda(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    cudaGetLastError(); // else the next check would meet it again
    throw Error(PB_FAILED, std::string(what) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")");
}

Staging::Staging(cudaStream_t stream) : stream_(stream) {
    for (Slot& slot : slots_) {
        void* memory = nullptr;
        check_cuda(cudaHostAlloc(&memory, kSlotBytes, cudaHostAllocDefault), "pinned memory for copies");
        slot.memory = static_cast<uint8_t*>(memory);
        check_cuda(cudaEventCreateWithFlags(&slot.free, cudaEventDisableTiming), "an event");
    }
}

Staging::~Staging() {
    for (const Slot& slot : slots_) {
        if (slot.free) cudaEventDestroy(slot.free);
        if (slot.memory) cudaFreeHost(slot.memory);
    }
}

Staging::Slot& Staging::next() {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    check_cuda(cudaEventSynchronize(slot.free), "waiting for a copy"); // of an event never recorded: at once
    return slot;
}

void Staging::upload(void* to, const void* from, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes; done += kSlotBytes) {
        const uint64_t part = std::min(kSlotBytes, bytes - done);
        Slot& slot = next();
        std::memcpy(slot.memory, static_cast<const uint8_t*>(from) + done, part);
        uint8_t* const at = static_cast<uint8_t*>(to) + done;
        check_cuda(cudaMemcpyAsync(at, slot.memory, part, cudaMemcpyHostToDevice, stream_), "a copy to the device");
        check_cuda(cudaEventRecord(slot.free, stream_), "an event");
    }
}

void Staging::download(void* to, const void* from, uint64_t bytes) {
    const uint64_t round = kSlotBytes * slots_.size();
    for (uint64_t begin = 0; begin < bytes; begin += round) {
        const uint64_t end = std::min(bytes, begin + round);
        std::array<Slot*, std::tuple_size_v<decltype(slots_)>> used{};
        size_t count = 0;
        for (uint64_t at = begin; at < end; at += kSlotBytes) {
            Slot& slot = next();
            check_cuda(cudaMemcpyAsync(slot.memory, static_cast<const uint8_t*>(from) + at,
                                       std::min(kSlotBytes, end - at), cudaMemcpyDeviceToHost, stream_),
                       "a copy from the device");
            check_cuda(cudaEventRecord(slot.free, stream_), "an event");
            used[count++] = &slot;
        }
        for (size_t i = 0; i < count; ++i) {
            check_cuda(cudaEventSynchronize(used[i]->free), "waiting for a copy from the device");
            const uint64_t at = begin + i * kSlotBytes;
            std::memcpy(static_cast<uint8_t*>(to) + at, used[i]->memory, std::min(kSlotBytes, end - at));
        }
    }
}

namespace {

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

}  // namespace

void* CudaDevice::take(uint64_t bytes) {
    void* memory = nullptr;
    const Unrecorded unrecorded;
    cudaError_t code = cudaMallocAsync(&memory, std::max<uint64_t>(bytes, 1), capturing_ ? unrecorded_ : stream_);
    if (code == cudaSuccess && capturing_) code = cudaStreamSynchronize(unrecorded_);
    if (code == cudaSuccess) return memory;
    cudaGetLastError(); // else the next check would meet it again
    throw Error(PB_FAILED, "cannot allocate " + std::to_string(bytes) + " bytes of the GPU's memory: " +
                               cudaGetErrorString(code));
}

void* CudaDevice::alloc(uint64_t bytes) {
    use();
    void* const memory = take(bytes);
    check_cuda(cudaMemsetAsync(memory, 0, bytes, stream_), "zeroing memory");
    check_cuda(cudaStreamSynchronize(stream_), "allocating memory");
    return memory;
}

void CudaDevice::free(void* memory) {
    if (!memory) return;
    cudaSetDevice(index_);
    cudaFreeAsync(memory, stream_);
}

void CudaDevice::to_device(void* to, const void* from, uint64_t bytes) {
    use();
    staging_->upload(to, from, bytes);
}

void CudaDevice::to_host(void* to, const void* from, uint64_t bytes) {
    use();
    staging_->download(to, from, bytes);
}

void CudaDevice::to_host_async(void* to, const void* from, uint64_t bytes) {
    constexpr uint64_t kLeast = 64 << 10;
    use();
    auto fits = std::find_if(pinned_.begin(), pinned_.end(), [&](const Pinned& p) { return p.bytes >= bytes; });
    if (fits == pinned_.end()) {
        Pinned more{nullptr, std::max(bytes, kLeast)};
        check_cuda(cudaHostAlloc(&more.memory, more.bytes, cudaHostAllocDefault), "pinned memory for a copy");
        fits = pinned_.insert(pinned_.end(), more);
    }
    later_.push_back({*fits, to, bytes});
    pinned_.erase(fits);
    check_cuda(cudaMemcpyAsync(later_.back().pinned.memory, from, bytes, cudaMemcpyDeviceToHost, stream_),
               "a copy from the device");
}

void CudaDevice::copy_page(void* to, const void* from, uint64_t bytes) {
    use();
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "a copy within the device");
}

void* CudaDevice::host_alloc(uint64_t bytes) {
    use();
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, std::max<uint64_t>(bytes, 1), cudaHostAllocDefault), "pinned memory for pages");
    return memory;
}

void CudaDevice::host_free(void* memory) noexcept {
    cudaSetDevice(index_);
    cudaFreeHost(memory);
}

void CudaDevice::page_to_host(void* to, const void* from, uint64_t bytes) {
    use();
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "a page to the host");
}

void CudaDevice::page_to_device(void* to, const void* from, uint64_t bytes) {
    use();
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "a page from the host");
}

void* CudaDevice::scratch(uint64_t bytes) {
    if (!scratch_.empty() && scratch_.back().second >= bytes) return scratch_.back().first;
    const uint64_t size = std::max(bytes, scratch_.empty() ? uint64_t{1} << 20 : 2 * scratch_.back().second);
    scratch_.push_back({take(size), size});
    return scratch_.back().first;
}

void CudaDevice::upload_table(void* to, const void* from, uint64_t bytes) {
    if (!capturing_) return staging_->upload(to, from, bytes);
    const Unrecorded unrecorded;
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, unrecorded_), "a table of experts");
    check_cuda(cudaStreamSynchronize(unrecorded_), "a table of experts");
}

const kernels::cuda::DeviceMatrix* CudaDevice::expert_table(const pb_weight* const* experts, uint32_t count) {
    const std::vector<const pb_weight*> key(experts, experts + count);
    auto found = expert_tables_.find(key);
    if (found == expert_tables_.end()) {
        std::vector<kernels::cuda::DeviceMatrix> table;
        for (const pb_weight* e : key) table.push_back(e->matrix);
        void* const memory = take(table.size() * sizeof table[0]);
        upload_table(memory, table.data(), table.size() * sizeof table[0]);
        found = expert_tables_.emplace(key, memory).first;
    }
    return static_cast<const kernels::cuda::DeviceMatrix*>(found->second);
}

}  // namespace patchbay
