// Identity of a full block: a hash of its parent's identity, its tokens and extra keys (adapter, salt, …). Blocks of
// equal identity hold the same KV.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace patchbay::kv {

struct BlockKey {
    uint64_t high = 0, low = 0;
    bool operator==(const BlockKey&) const = default;
};

BlockKey root_key(std::string_view what); // from model, dtype and layout: a swap that changes KV changes all keys
BlockKey child_key(const BlockKey& parent, std::span<const int32_t> tokens);
BlockKey in_group(BlockKey, size_t group); // blocks of the same tokens have one page in each group

struct BlockKeyHash {
    size_t operator()(const BlockKey& k) const { return k.low; }
};

}  // namespace patchbay::kv
