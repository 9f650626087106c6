// The tree of a document from what a YAML parser finds, value by value in the order of the text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/document.hpp"

namespace patchbay::config {

// Whether errors may quote what the file holds. An `include` may name any file, a password file too: only where in it
// something is wrong is said then.
enum class Quoting { kContent, kNothing };

// Why a document is not read any further. Thrown, because it has to pass through yaml-cpp's parser; parse_yaml()
// catches it.
struct Refusal {
    Origin origin;
    std::string text;
};

// How much a tree of values may hold by the limits of a document, aliases expanded: a few lines of YAML whose aliases
// repeat one another would otherwise fill the memory.
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

class TreeBuilder { // what adds to the tree throws Refusal
  public:
    using Anchor = size_t; // by which aliases name a value; 0: none

    TreeBuilder(const DocumentLimits& limits, Quoting quoting) // limits: must outlive this
        : limits_(limits), quoting_(quoting), budget_(limits) {}

    void open(Node, Anchor); // a list or map; what comes before its close() goes into it
    void close();
    void add(Node, Anchor);  // any other value, or a key
    void add_alias(Anchor, const Origin& at);

    const Faults& faults() const { return faults_; } // keys given twice
    Node take() { return std::move(root_); }

  private:
    struct Open { // a list or map whose end has not come
        Node node;
        Anchor anchor = 0;
        bool has_key = false; // of the value that is next
        std::string key;
        Origin key_origin;
    };

    bool wants_key() const;
    void attach(Node, Anchor);
    void take_key(Open& map, Node key) const;
    void add_entry(Open& map, Node value);

    const DocumentLimits& limits_;
    const Quoting quoting_;
    TreeBudget budget_;
    std::vector<Open> open_; // the outermost first
    std::map<Anchor, Node> anchored_;
    Node root_;
    Faults faults_;
};

}  // namespace patchbay::config
