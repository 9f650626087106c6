#include "suffix_tree.hpp"

#include <algorithm>

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

SuffixTree::SuffixTree(uint32_t depth) : depth_(depth) {}

void SuffixTree::begin_text() {
    growing_.clear();
    texts_.push_back({ever_, {}});
}

void SuffixTree::append(int32_t token) {
    Text& text = texts_.back();
    growing_.push_back({kRoot, 0, static_cast<uint32_t>(text.tokens.size())});
    text.tokens.push_back(token);
    ever_ += 1;
    held_ += 1;
    size_t kept = 0;
    for (const Growing& suffix : growing_) {
        const NodeId at = pass(suffix.node, suffix.depth, token, suffix.start);
        if (!nodes_[at].leaf() && suffix.depth + 1 < depth_) growing_[kept++] = {at, suffix.depth + 1, suffix.start};
    }
    growing_.resize(kept);
}

NodeId SuffixTree::pass(NodeId parent, uint32_t depth, int32_t token, uint32_t start) {
    NodeId at = nodes_.child(parent, token);
    if (at == kNone) {
        Node leaf;
        leaf.token = token;
        leaf.text = forgotten_ + texts_.size() - 1;
        leaf.start = start;
        at = nodes_.add_child(parent, leaf);
    } else if (nodes_[at].leaf()) {
        split(at, depth + 1);
    }
    nodes_[at].count += 1;
    nodes_[at].latest = ever_ - 1;
    return at;
}

// The leaf stays as a node, and what follows it in its text becomes a leaf below it.
void SuffixTree::split(NodeId at, uint32_t depth) {
    const Text& owner = text(nodes_[at].text);
    const size_t next = size_t{nodes_[at].start} + depth;
    Node leaf;
    leaf.text = nodes_[at].text;
    leaf.start = nodes_[at].start;
    nodes_[at].text = UINT64_MAX;
    if (depth == depth_ || next >= owner.tokens.size()) return;
    leaf.token = owner.tokens[next];
    leaf.count = 1;
    leaf.latest = owner.begin + next;
    nodes_.add_child(at, leaf);
}

void SuffixTree::forget_oldest() {
    const std::vector<int32_t>& tokens = texts_.front().tokens;
    for (size_t start = 0; start < tokens.size(); ++start) forget(tokens, start);
    held_ -= tokens.size();
    texts_.pop_front();
    forgotten_ += 1;
}

void SuffixTree::forget(const std::vector<int32_t>& tokens, size_t start) {
    std::vector<NodeId> path = {kRoot};
    for (size_t i = start; i < tokens.size() && i - start < depth_; ++i) {
        const NodeId at = nodes_.child(path.back(), tokens[i]);
        nodes_[at].count -= 1;
        path.push_back(at);
        if (nodes_[at].leaf()) break;
    }
    for (; path.size() > 1 && nodes_[path.back()].count == 0; path.pop_back())
        nodes_.remove_child(path[path.size() - 2], path.back());
}

Guess SuffixTree::guess(std::span<const int32_t> context, const Limits& limits) const {
    Guess best;
    const size_t longest = std::min<size_t>(context.size(), depth_ - 1);
    for (size_t n = 1; n <= longest; ++n) {
        const auto at = find(context.last(n));
        if (!at) break; // no longer run occurs either
        Guess guess;
        guess.match = static_cast<uint32_t>(n);
        extend(guess, *at, limits, nullptr);
        if (!guess.tokens.empty() && guess.score >= best.score) best = std::move(guess);
    }
    return best;
}

std::vector<std::vector<int32_t>> SuffixTree::branches(std::span<const int32_t> context, const Guess& of,
                                                       const Limits& limits, size_t max_branches) const {
    struct Candidate {
        double probability;
        std::vector<int32_t> tokens;
    };
    std::vector<Candidate> found;
    for (uint32_t n = max_branches > 0 ? of.match : 0; n > 0; --n) {
        const auto at = find(context.last(n));
        if (!at) continue;
        Guess chain;
        chain.match = n;
        std::vector<Fork> forks;
        extend(chain, *at, limits, &forks);
        if (n < of.match && !chain.tokens.empty()) found.push_back({chain.first, chain.tokens});
        for (const Fork& fork : forks) {
            Guess branch = chain;
            branch.tokens.resize(fork.guessed);
            branch.tokens.push_back(nodes_[fork.at.node].token);
            extend(branch, fork.at, limits, nullptr);
            found.push_back({fork.at.probability, std::move(branch.tokens)});
        }
    }
    std::ranges::stable_sort(found, std::ranges::greater(), &Candidate::probability); // among equals the longer match
    std::vector<std::vector<int32_t>> out;
    for (Candidate& c : found) {
        if (out.size() == 4 * max_branches) break;
        out.push_back(std::move(c.tokens));
    }
    return out;
}

std::optional<SuffixTree::At> SuffixTree::find(std::span<const int32_t> run) const {
    At at{kRoot, 0, 1};
    for (const int32_t token : run) {
        if (nodes_[at.node].leaf()) {
            const int32_t* const next = in_leaf(at);
            if (!next || *next != token) return std::nullopt;
        } else if ((at.node = nodes_.child(at.node, token)) == kNone) {
            return std::nullopt;
        }
        at.depth += 1;
    }
    return at;
}

const int32_t* SuffixTree::in_leaf(const At& at) const {
    const Node& leaf = nodes_[at.node];
    const std::vector<int32_t>& tokens = text(leaf.text).tokens;
    const size_t next = size_t{leaf.start} + at.depth;
    return next < tokens.size() ? &tokens[next] : nullptr;
}

// The longest chain that the limits allow from there on, after the tokens guessed so far.
void SuffixTree::extend(Guess& guess, At at, const Limits& limits, std::vector<Fork>* forks) const {
    const double earned = std::max(1.0, static_cast<double>(guess.match) * limits.spec_factor);
    const double max_tokens = std::min<double>(limits.max_tokens, earned);
    while (static_cast<double>(guess.tokens.size() + 1) <= max_tokens && at.depth < depth_) {
        int32_t token = 0;
        if (nodes_[at.node].leaf()) {
            const int32_t* const next = in_leaf(at);
            if (!next) return;
            token = *next;
        } else {
            uint64_t all = 0;
            NodeId likely = kNone;
            for (NodeId c = nodes_[at.node].first; c != kNone; c = nodes_[c].next) {
                const Node& node = nodes_[c];
                all += node.count;
                if (likely == kNone || node.count > nodes_[likely].count ||
                    (node.count == nodes_[likely].count && node.latest > nodes_[likely].latest))
                    likely = c;
            }
            if (likely == kNone) return;
            const auto probability_of = [&](NodeId c) {
                return at.probability * (static_cast<double>(nodes_[c].count) / static_cast<double>(all));
            };
            for (NodeId c = forks ? nodes_[at.node].first : kNone; c != kNone; c = nodes_[c].next)
                if (c != likely && probability_of(c) >= limits.min_probability)
                    forks->push_back({{c, at.depth + 1, probability_of(c)}, guess.tokens.size()});
            at.probability = probability_of(likely);
            token = nodes_[likely].token;
            at.node = likely;
        }
        if (at.probability < limits.min_probability) return;
        if (guess.tokens.empty()) guess.first = at.probability;
        guess.tokens.push_back(token);
        guess.score += at.probability;
        at.depth += 1;
    }
}

}  // namespace patchbay::suffix
