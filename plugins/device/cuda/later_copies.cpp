#include "later_copies.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace patchbay {

LaterCopies::~LaterCopies() {
    drop_started();
    cudaStreamSynchronize(gpu_.stream()); // copies of steps that were given up are still on their way there
    for (const Pinned& p : unused_) cudaFreeHost(p.memory);
}

void LaterCopies::start(void* to, const void* from, uint64_t bytes) {
    constexpr uint64_t kLeast = 64 << 10;
    auto fits = std::find_if(unused_.begin(), unused_.end(), [&](const Pinned& p) { return p.bytes >= bytes; });
    if (fits == unused_.end()) {
        Pinned more{nullptr, std::max(bytes, kLeast)};
        unused_.reserve(made_ + 1);
        check_cuda(cudaHostAlloc(&more.memory, more.bytes, cudaHostAllocDefault), "pinned memory for a copy");
        made_ += 1;
        fits = unused_.insert(unused_.end(), more);
    }
    started_.push_back({*fits, to, bytes});
    unused_.erase(fits);
    check_cuda(cudaMemcpyAsync(started_.back().pinned.memory, from, bytes, cudaMemcpyDeviceToHost, gpu_.stream()),
               "a copy from the device");
}

LaterCopies::OfStep LaterCopies::end_step() { return std::exchange(started_, {}); }

void LaterCopies::finish(const OfStep& copies) {
    for (const Copy& copy : copies) std::memcpy(copy.to, copy.pinned.memory, copy.bytes);
    drop(copies);
}

void LaterCopies::drop(const OfStep& copies) noexcept {
    for (const Copy& copy : copies) unused_.push_back(copy.pinned);
}

void LaterCopies::drop_started() noexcept { drop(std::exchange(started_, {})); }

}  // namespace patchbay
