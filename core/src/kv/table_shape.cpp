#include "kv/table_shape.hpp"

#include <algorithm>
#include <utility>

#include "kv/prefix_length.hpp"

namespace patchbay::kv {

TableShape::TableShape(std::vector<GroupSpec> groups, uint32_t block_size)
    : groups_(std::move(groups)), block_size_(block_size) {
    const auto has_tokens = [](const GroupSpec& g) { return g.kind != GroupKind::kRecurrent; };
    std::stable_partition(groups_.begin(), groups_.end(), has_tokens);
    for (const GroupSpec& g : groups_)
        if (has_tokens(g)) windows_.push_back(g.window);
}

size_t TableShape::first_seen(size_t group, uint64_t computed) const {
    return first_seen_block(windows_[group], computed, block_size_);
}

uint64_t TableShape::lacking(const BlockTable& t, uint64_t tokens) const {
    const uint64_t wanted = blocks_for(tokens);
    const uint64_t states = t.pages.empty() || t.held == 0 ? state_pages() : 0;
    return (wanted > t.blocks ? wanted - t.blocks : 0) * windows_.size() + (tokens > 0 ? states : 0);
}

}  // namespace patchbay::kv
