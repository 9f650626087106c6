#include "nodes.hpp"

namespace patchbay::suffix {

NodeId Nodes::child(NodeId parent, int32_t token) const {
    const auto at = children_.find(key(parent, token));
    return at == children_.end() ? Node::kNone : at->second;
}

NodeId Nodes::add_child(NodeId parent, const Node& node) {
    NodeId at = static_cast<NodeId>(nodes_.size());
    if (free_.empty()) {
        nodes_.push_back(node);
    } else {
        at = free_.back();
        free_.pop_back();
        nodes_[at] = node;
    }
    nodes_[at].next = nodes_[parent].first;
    if (nodes_[at].next != Node::kNone) nodes_[nodes_[at].next].before = at;
    nodes_[parent].first = at;
    children_[key(parent, node.token)] = at;
    return at;
}

void Nodes::remove_child(NodeId parent, NodeId at) {
    const Node& node = nodes_[at];
    if (node.next != Node::kNone) nodes_[node.next].before = node.before;
    if (node.before != Node::kNone) nodes_[node.before].next = node.next;
    else nodes_[parent].first = node.next;
    children_.erase(key(parent, node.token));
    free_.push_back(at);
}

}  // namespace patchbay::suffix
