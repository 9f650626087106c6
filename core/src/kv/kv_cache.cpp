#include "kv/kv_cache.hpp"

#include <utility>

namespace patchbay::kv {

KvCache::KvCache(uint32_t block_count, uint32_t block_size, PrefixCaching caching, std::string_view root,
                 std::vector<GroupSpec> groups, uint32_t swap_slots)
    : shape_(std::move(groups), block_size), pages_(block_count, shape_, copies_, events_),
      tables_(shape_, pages_, copies_), prefixes_(caching, root, shape_, pages_, events_),
      swap_(swap_slots, {shape_, pages_, tables_, prefixes_, copies_}) {}

}  // namespace patchbay::kv
