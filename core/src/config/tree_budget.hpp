// How much a tree of values may hold by the limits of a document, aliases expanded: a few lines of YAML whose aliases
// repeat one another would otherwise fill the memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "config/document.hpp"

namespace patchbay::config {

// Why a document is not read any further. Thrown, because it has to pass through yaml-cpp's parser; parse_yaml()
// catches it.
struct Refusal {
    Origin origin;
    std::string text;
};

class TreeBudget { // all of these throw Refusal
  public:
    explicit TreeBudget(const DocumentLimits& limits) : limits_(limits) {} // which must outlive this

    void add(const Node& node) { add(node, node.origin); } // without what is in it
    // A copy of all of it, which is about to be made `depth` levels deep in the tree.
    void add_copy(const Node&, size_t depth, const Origin& at);
    void check_depth(size_t levels, const Origin& at) const;

  private:
    void add(const Node&, const Origin& at);

    const DocumentLimits& limits_;
    uint64_t nodes_ = 0, bytes_ = 0;
};

}  // namespace patchbay::config
