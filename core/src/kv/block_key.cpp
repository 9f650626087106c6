#include "kv/block_key.hpp"

#include <xxhash.h>

namespace patchbay::kv {
namespace {

BlockKey key_of(XXH128_hash_t h) { return {h.high64, h.low64}; }

}  // namespace

BlockKey root_key(std::string_view what) { return key_of(XXH3_128bits(what.data(), what.size())); }

BlockKey child_key(const BlockKey& parent, std::span<const int32_t> tokens) {
    const BlockKey parts[2] = {parent, key_of(XXH3_128bits(tokens.data(), tokens.size_bytes()))};
    return key_of(XXH3_128bits(parts, sizeof parts));
}

BlockKey in_group(BlockKey key, size_t group) {
    key.low ^= group * 0x9E3779B97F4A7C15ull;
    return key;
}

}  // namespace patchbay::kv
