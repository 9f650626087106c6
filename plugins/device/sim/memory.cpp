#include "memory.hpp"

#include <cstring>
#include <memory>

#include "patchbay/plugin.hpp"

namespace patchbay {
namespace {

struct alignas(64) Allocation { // what alloc() returns instead of memory
    uint64_t bytes;
};

}  // namespace

void CountedMemory::take(uint64_t bytes, const char* what) {
    if (bytes > free_bytes_)
        throw Error(PB_FAILED, std::string(what) + " of " + std::to_string(bytes) + " bytes, but of the " +
                                   std::to_string(bytes_) + " bytes of the simulated " + owner_ + " only " +
                                   std::to_string(free_bytes_) + " are free");
    free_bytes_ -= bytes;
}

void* CountedMemory::alloc(uint64_t bytes) {
    take(bytes, "memory");
    return new Allocation{bytes};
}

void CountedMemory::free(void* memory) {
    const std::unique_ptr<Allocation> owned(static_cast<Allocation*>(memory));
    if (owned) give_back(owned->bytes);
}

void CountedMemory::to_host(void* to, const void*, uint64_t bytes) const { std::memset(to, 0, bytes); }

}  // namespace patchbay
