#include "runner/kv_pages.hpp"

#include <algorithm>

#include "base/refusals.hpp"

namespace patchbay::runner {

void KvPages::release() {
    if (memory_) device_.call<&pb_device::free>(memory_);
    memory_ = nullptr;
    count_ = 0;
}

Result<> KvPages::allocate(uint32_t count, uint64_t page_bytes) {
    release();
    if (count > UINT64_MAX / std::max<uint64_t>(page_bytes, 1))
        return invalid(std::to_string(count) + " KV pages of " + std::to_string(page_bytes) +
                       " bytes are more than can be counted");
    count_ = count;
    page_bytes_ = page_bytes;
    return device_.checked<&pb_device::alloc>(uint64_t{count} * page_bytes, &memory_);
}

}  // namespace patchbay::runner
