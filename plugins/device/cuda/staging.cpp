#include "staging.hpp"

#include <algorithm>
#include <cstring>

#include "gpu.hpp"

namespace patchbay {

Staging::Staging(cudaStream_t stream) : stream_(stream) {
    for (Slot& slot : slots_) check_cuda(slot.allocate(kSlotBytes), "pinned memory for copies");
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

}  // namespace patchbay
