#include "runner/kv_pages.hpp"

#include <algorithm>

#include "base/refusals.hpp"

namespace patchbay::runner {

Result<> KvPages::allocate(uint32_t count, uint64_t page_bytes) {
    release();
    if (count > UINT64_MAX / std::max<uint64_t>(page_bytes, 1))
        return invalid(std::to_string(count) + " KV pages of " + std::to_string(page_bytes) +
                       " bytes are more than can be counted");
    count_ = count;
    page_bytes_ = page_bytes;
    return memory_.allocate(uint64_t{count} * page_bytes);
}

}  // namespace patchbay::runner
