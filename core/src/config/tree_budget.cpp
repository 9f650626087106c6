#include "config/tree_budget.hpp"

#include <algorithm>

namespace patchbay::config {
namespace {

size_t levels_of(const Node& node) {
    size_t max = 0;
    for (const Node& item : node.items) max = std::max(max, levels_of(item));
    for (const Entry& entry : node.entries) max = std::max(max, levels_of(entry.value));
    return max + (node.kind == NodeKind::kList || node.kind == NodeKind::kMap ? 1 : 0);
}

}  // namespace

void TreeBudget::add(const Node& node, const Origin& at) {
    nodes_ += 1;
    bytes_ += node.text.size();
    if (nodes_ > limits_.nodes)
        throw Refusal{at, "more than " + std::to_string(limits_.nodes) + " values, aliases expanded"};
    if (bytes_ > 8 * limits_.bytes)
        throw Refusal{at, "more than " + std::to_string(8 * limits_.bytes) + " bytes, aliases expanded"};
}

void TreeBudget::add_copy(const Node& node, size_t depth, const Origin& at) {
    add(node, at);
    for (const Node& item : node.items) add_copy(item, depth, at);
    for (const Entry& entry : node.entries) add_copy(entry.value, depth, at);
    check_depth(depth + levels_of(node), at);
}

void TreeBudget::check_depth(size_t levels, const Origin& at) const {
    if (levels > limits_.depth)
        throw Refusal{at, "nested more than " + std::to_string(limits_.depth) + " levels deep"};
}

}  // namespace patchbay::config
