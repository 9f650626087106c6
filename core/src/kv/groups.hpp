// KV groups: layers whose KV has the same form and lifetime share a block table. All groups take pages of one pool, so
// pages have equal bytes, and a form with more layers than a page holds makes several groups. Built once at load by the
// runner; KvCache keeps the pages of a sequence by group.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kv/group_kind.hpp"

namespace patchbay::kv {

struct GroupSpec {
    GroupKind kind = GroupKind::kFull;
    uint32_t window = 0; // for sliding ones: tokens that a token sees, including itself
    bool operator==(const GroupSpec&) const = default;
};

struct LayerKv { // what a layer keeps
    GroupSpec spec;
    uint32_t kv_heads = 0, head_dim = 0;
    uint64_t bytes = 0;     // for block_size tokens, or for a sequence's state; a multiple of 64
    std::string layout_tag; // the arrangement of these bytes
    std::optional<uint32_t> owner; // an earlier layer whose KV it attends over: it keeps nothing itself
    bool operator==(const LayerKv&) const = default;
};

struct LayerPlace { // its bytes are in the pages of the group, from the offset on
    uint32_t group = 0;
    uint64_t offset = 0;
};

struct Grouping {
    std::vector<GroupSpec> groups;  // groups of tokens before groups of states
    std::vector<LayerPlace> layers; // by layer; a layer that keeps nothing has its owner's place
    uint64_t page_bytes = 0;
    double padding = 0; // share of pages' bytes that no layer uses, for a sequence of kTypicalLength tokens
    uint32_t better_block_size = 0; // a block size for which states fit pages closely; 0: padding is low enough
};

// The length of a typical sequence: a full group takes pages for all of it, a sliding group for the window.
inline constexpr uint32_t kTypicalLength = 1024;
inline constexpr double kMaxPadding = 0.1; // accepted for fewer groups, and so fewer block tables

Grouping group_layers(std::span<const LayerKv> layers, uint32_t block_size);

// The maximum of pages that a window of tokens touches.
constexpr uint64_t window_pages(uint32_t window, uint32_t block_size) {
    return (uint64_t{window} + block_size - 2) / block_size + 1;
}

enum class Computed { kInChunks, kAtOnce }; // how a prompt is computed

// Tokens of the longest sequence that fits into this many pages alone; UINT64_MAX: any.
uint64_t longest_sequence(std::span<const GroupSpec> groups, uint32_t block_size, uint32_t pages, Computed how);

}  // namespace patchbay::kv
