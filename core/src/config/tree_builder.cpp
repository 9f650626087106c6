#include "config/tree_builder.hpp"

#include <algorithm>
#include <utility>

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

void TreeBuilder::open(Node node, Anchor anchor) {
    const char* const kind = node.kind == NodeKind::kList ? "a list" : "a map"; // what is in it was not read yet
    if (wants_key()) throw Refusal{node.origin, std::string("a key must be a word, this one is ") + kind};
    budget_.check_depth(open_.size() + 1, node.origin);
    budget_.add(node);
    open_.push_back({std::move(node), anchor, false, "", {}});
}

void TreeBuilder::close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    attach(std::move(done.node), done.anchor);
}

void TreeBuilder::add(Node node, Anchor anchor) {
    budget_.add(node);
    attach(std::move(node), anchor);
}

void TreeBuilder::add_alias(Anchor anchor, const Origin& at) {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) throw Refusal{at, "an alias inside of what it names"};
    budget_.add_copy(found->second, open_.size(), at);
    add(found->second, 0);
}

void TreeBuilder::attach(Node node, Anchor anchor) {
    if (anchor != 0) {
        budget_.add_copy(node, open_.size(), node.origin);
        anchored_[anchor] = node;
    }
    if (open_.empty()) {
        root_ = std::move(node);
    } else if (Open& parent = open_.back(); parent.node.kind == NodeKind::kList) {
        parent.node.items.push_back(std::move(node));
    } else if (parent.has_key) {
        add_entry(parent, std::move(node));
    } else {
        take_key(parent, std::move(node));
    }
}

bool TreeBuilder::wants_key() const {
    return !open_.empty() && open_.back().node.kind == NodeKind::kMap && !open_.back().has_key;
}

void TreeBuilder::take_key(Open& map, Node key) const {
    if (key.kind != NodeKind::kScalar) // a list or a map by its alias, or nothing
        throw Refusal{key.origin, "a key must be a word, this one is " + key.describe()};
    if (key.text == "<<" && !key.quoted) throw Refusal{key.origin, "merge keys (<<) are not supported, use include"};
    if (map.node.entries.size() >= limits_.keys)
        throw Refusal{key.origin, "a map of more than " + std::to_string(limits_.keys) + " keys"};
    map.has_key = true;
    map.key = std::move(key.text);
    map.key_origin = std::move(key.origin);
}

void TreeBuilder::add_entry(Open& map, Node value) {
    map.has_key = false;
    auto& entries = map.node.entries;
    const auto first = std::ranges::find(entries, map.key, &Entry::key);
    if (first != entries.end())
        faults_.add(map.key_origin, (quoting_ == Quoting::kContent ? "key '" + printable(map.key) + "'" : "a key") +
                                        " is given twice, first at line " + std::to_string(first->key_origin.line));
    else
        entries.push_back({std::move(map.key), std::move(map.key_origin), std::move(value)});
}

}  // namespace patchbay::config
