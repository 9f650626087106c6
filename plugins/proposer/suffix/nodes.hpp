// The nodes of a suffix tree: children by token, and siblings in a list, the latest first. Used by suffix_tree.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace patchbay::suffix {

using NodeId = uint32_t;

// A run of tokens that ends with `token`. A run that occurs once has no children (a leaf): the text itself says
// what follows, until the run occurs a second time.
struct Node {
    static constexpr NodeId kRoot = 0, kNone = UINT32_MAX;
    int32_t token = 0;
    uint32_t count = 0;                                 // occurrences
    NodeId first = kNone, next = kNone, before = kNone; // child, and siblings
    uint64_t text = UINT64_MAX;                         // for a leaf: the text's number since the first text,
    uint32_t start = 0;                                 // and where the run begins in it
    uint64_t latest = 0;                                // number of the last token of its latest occurrence
    bool leaf() const { return text != UINT64_MAX; }
};

class Nodes {
  public:
    Nodes() : nodes_(1) {} // the root

    Node& operator[](NodeId at) { return nodes_[at]; }
    const Node& operator[](NodeId at) const { return nodes_[at]; }
    size_t count() const { return nodes_.size() - free_.size() - 1; } // but for the root

    NodeId child(NodeId parent, int32_t token) const; // kNone: none
    NodeId add_child(NodeId parent, const Node&);
    void remove_child(NodeId parent, NodeId); // one without children

  private:
    static uint64_t key(NodeId parent, int32_t token) { return uint64_t{parent} << 32 | static_cast<uint32_t>(token); }

    std::vector<Node> nodes_;
    std::vector<NodeId> free_;
    std::unordered_map<uint64_t, NodeId> children_; // by key()
};

}  // namespace patchbay::suffix
