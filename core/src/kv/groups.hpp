// KV groups: layers whose KV has one form and one fate share a block table. All groups take pages of one pool, so pages
// are of equal bytes, and a form with more layers than a page holds makes several groups. Built once at load by the
// runner; KvCache holds a sequence's pages by them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace patchbay::kv {

enum class GroupKind { kFull, kSliding, kRecurrent };
inline constexpr size_t kGroupKinds = 3;

struct GroupSpec {
    GroupKind kind = GroupKind::kFull;
    uint32_t window = 0; // of sliding ones: tokens that a token sees, itself included
    bool operator==(const GroupSpec&) const = default;
};

struct LayerKv { // what a layer keeps
    GroupSpec spec;
    uint32_t kv_heads = 0, head_dim = 0;
    uint64_t bytes = 0;     // of block_size tokens, or of a sequence's state; a multiple of 64
    std::string layout_tag; // what lies where in them
    std::optional<uint32_t> owner; // an earlier layer whose KV it attends over: it keeps nothing itself
    bool operator==(const LayerKv&) const = default;
};

struct LayerPlace { // of a layer: its bytes lie in the pages of the group, from the offset on
    uint32_t group = 0;
    uint64_t offset = 0;
};

struct Grouping {
    std::vector<GroupSpec> groups;  // those of tokens before those of states
    std::vector<LayerPlace> layers; // by layer; of one that keeps nothing: its owner's
    uint64_t page_bytes = 0;
    double padding = 0; // share of pages' bytes that no layer uses, over the pages of a sequence of kTypicalLength tokens
    uint32_t better_block_size = 0; // with which states would fit pages closely; 0: padding is no matter
};

// The length of a typical sequence: of a full group it takes pages for all of it, of a sliding one for the window.
inline constexpr uint32_t kTypicalLength = 1024;
inline constexpr double kMaxPadding = 0.1; // what fewer groups, and so fewer block tables, may cost

Grouping group_layers(std::span<const LayerKv> layers, uint32_t block_size);

// Pages that a window of tokens touches at most.
constexpr uint64_t window_pages(uint32_t window, uint32_t block_size) {
    return (uint64_t{window} + block_size - 2) / block_size + 1;
}

enum class Computed { kInChunks, kAtOnce }; // a prompt

// Tokens of the longest sequence that, alone, fits so many pages; UINT64_MAX: any.
uint64_t longest_sequence(std::span<const GroupSpec> groups, uint32_t block_size, uint32_t pages, Computed how);

}  // namespace patchbay::kv
