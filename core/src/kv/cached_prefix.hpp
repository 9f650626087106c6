// How much of a prompt is cached.
#pragma once
#include <cstdint>

namespace patchbay::kv {

struct CachedPrefix {
    uint32_t tokens = 0;       // leading tokens whose KV is cached
    uint32_t pages_in_use = 0; // of the pages of these tokens, those that a sequence holds already
    bool operator==(const CachedPrefix&) const = default;
};

}  // namespace patchbay::kv
