// The tree of a document from what a YAML parser finds, value by value in the order of the text.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/tree_budget.hpp"

namespace patchbay::config {

// Whether errors may quote what the file holds. An `include` may name any file, a password file too: only where in it
// something is wrong is said then.
enum class Quoting { kContent, kNothing };

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
