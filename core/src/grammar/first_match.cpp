#include "grammar/first_match.hpp"

#include <algorithm>
#include <deque>

#include "base/refusals.hpp"

namespace patchbay::grammar {

Result<FirstMatch> FirstMatch::of(const std::vector<std::string>& texts) {
    FirstMatch out;
    out.count_ = texts.size();
    size_t bytes = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
        if ((bytes += texts[i].size()) > kMaxBytes)
            return invalid("triggers and ends of more than " + std::to_string(kMaxBytes) + " bytes together");
        uint32_t at = 0;
        for (const char c : texts[i]) {
            const auto byte = static_cast<uint8_t>(c);
            if (out.nodes_[at].next[byte] == 0) {
                const auto fresh = static_cast<uint32_t>(out.nodes_.size());
                out.nodes_[at].next[byte] = fresh;
                out.nodes_.emplace_back();
            }
            at = out.nodes_[at].next[byte];
        }
        out.nodes_[at].ends.push_back(i);
    }
    std::deque<uint32_t> open; // in order of depth: a node's failure is known before its children are looked at
    for (const uint32_t child : out.nodes_[0].next)
        if (child != 0) open.push_back(child);
    for (; !open.empty(); open.pop_front()) {
        Node& node = out.nodes_[open.front()];
        const Node& failure = out.nodes_[node.fail];
        node.ends.insert(node.ends.end(), failure.ends.begin(), failure.ends.end());
        for (size_t byte = 0; byte < 256; ++byte) {
            if (const uint32_t child = node.next[byte]; child != 0) {
                out.nodes_[child].fail = failure.next[byte];
                open.push_back(child);
            } else {
                node.next[byte] = failure.next[byte];
            }
        }
    }
    return out;
}

// Nothing goes on after a text has ended.
Dfa FirstMatch::automaton(bool accepts_inside, size_t text) const {
    Dfa out;
    out.states.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
        const Node& node = nodes_[i];
        Dfa::State& state = out.states[i];
        const bool wanted = std::find(node.ends.begin(), node.ends.end(), text) != node.ends.end();
        state.accepts = accepts_inside ? node.ends.empty() : wanted;
        if (!node.ends.empty()) continue;
        for (uint32_t byte = 0; byte < 256; ++byte) {
            const uint32_t to = node.next[byte];
            if (accepts_inside && !nodes_[to].ends.empty()) continue;
            if (!state.edges.empty() && state.edges.back().to == to && state.edges.back().high + 1u == byte)
                state.edges.back().high = static_cast<uint8_t>(byte);
            else
                state.edges.push_back({static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), to});
        }
    }
    return out;
}

Dfa FirstMatch::none() const { return automaton(true, count_); }
Dfa FirstMatch::up_to(size_t text) const { return automaton(false, text); }

}  // namespace patchbay::grammar
