// All runs of up to `depth` tokens of some texts, and how often each occurs: a suffix tree of bounded depth that
// can append a token and forget a text. Used by the proposer suffix.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
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

class Nodes { // children by token, and siblings in a list, the latest first
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

struct Guess {
    std::vector<int32_t> tokens;
    double score = 0;   // sum over the tokens of the probability that the chain is right up to there
    double first = 0;   // probability of the first token
    uint32_t match = 0; // number of last tokens of the context that matched
};

struct Limits {
    uint32_t max_tokens = 0;          // maximum of tokens of a guess
    double spec_factor = 1;     // tokens of a guess for each matched token
    double min_probability = 0; // of the chain up to and including each guessed token
};

class SuffixTree {
  public:
    explicit SuffixTree(uint32_t depth);

    // Texts grow one after another: append() adds to the latest.
    void begin_text();
    void append(int32_t token);
    void forget_oldest(); // the oldest text; not if it is the only one
    size_t texts() const { return texts_.size(); }
    std::span<const int32_t> latest() const { return texts_.back().tokens; }
    size_t tokens() const { return held_; }
    size_t nodes() const { return nodes_.count(); }

    // What followed the last tokens of `context` where they occur in the texts. For each number of last tokens, a chain
    // of the most frequent tokens, of equal ones the latest; of those chains the one with the highest score, of
    // equal ones that of the longest match.
    Guess guess(std::span<const int32_t> context, const Limits&) const;
    // Further chains: what else followed its match or a shorter one, by the probability of the token that
    // differs. Some may be beginnings of others.
    std::vector<std::vector<int32_t>> branches(std::span<const int32_t> context, const Guess&, const Limits&,
                                               size_t max_branches) const;

  private:
    static constexpr NodeId kRoot = Node::kRoot, kNone = Node::kNone;

    struct Text {
        uint64_t begin; // number of tokens of all texts before it
        std::vector<int32_t> tokens;
    };
    struct Growing { // a suffix of the latest text that has reached this node
        NodeId node;
        uint32_t depth, start;
    };

    NodeId pass(NodeId parent, uint32_t depth, int32_t token, uint32_t start); // one more occurrence
    void split(NodeId leaf, uint32_t depth);
    void forget(const std::vector<int32_t>& tokens, size_t start);
    const Text& text(uint64_t number) const { return texts_[static_cast<size_t>(number - forgotten_)]; }
    struct At { // the place after a run of tokens
        NodeId node;
        uint32_t depth;
        double probability; // of the tokens guessed so far
    };
    struct Fork { // a token that a guess did not take
        At at;
        size_t guessed; // tokens of the guess before it
    };
    std::optional<At> find(std::span<const int32_t> run) const;
    const int32_t* in_leaf(const At&) const; // what follows at a leaf; nullptr: nothing
    void extend(Guess&, At, const Limits&, std::vector<Fork>* forks) const;

    uint32_t depth_;
    std::deque<Text> texts_;
    uint64_t forgotten_ = 0; // number of texts
    uint64_t ever_ = 0;      // tokens of all texts
    size_t held_ = 0;        // tokens of the texts that are kept
    Nodes nodes_;
    std::vector<Growing> growing_;
};

}  // namespace patchbay::suffix
