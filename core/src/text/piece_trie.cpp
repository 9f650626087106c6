#include "text/piece_trie.hpp"

#include <algorithm>

namespace patchbay::text {

PieceTrie::PieceTrie(std::vector<std::pair<std::string, int32_t>> pieces) {
    std::sort(pieces.begin(), pieces.end());
    struct Range { // of pieces that share the way to a node
        size_t begin, end, depth;
    };
    std::vector<Range> ranges{{0, pieces.size(), 0}}; // a node each, breadth first
    for (size_t node = 0; node < ranges.size(); ++node) {
        auto [begin, end, depth] = ranges[node];
        for (; begin < end && pieces[begin].first.size() == depth; ++begin) nodes_[node].value = pieces[begin].second;
        nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
        while (begin < end) {
            const char byte = pieces[begin].first[depth];
            size_t stop = begin + 1;
            while (stop < end && pieces[stop].first[depth] == byte) ++stop;
            nodes_.push_back({0, kNone, 0, static_cast<uint8_t>(byte)});
            ranges.push_back({begin, stop, depth + 1});
            ++nodes_[node].children;
            begin = stop;
        }
    }
    nodes_[0].value = kNone; // the empty piece
}

uint32_t PieceTrie::child(uint32_t node, char byte) const {
    const Node& at = nodes_[node];
    const auto first = nodes_.begin() + at.first_child, last = first + at.children;
    const auto found = std::lower_bound(first, last, static_cast<uint8_t>(byte),
                                        [](const Node& n, uint8_t wanted) { return n.byte < wanted; });
    return found != last && found->byte == static_cast<uint8_t>(byte) ? static_cast<uint32_t>(found - nodes_.begin())
                                                                      : 0;
}

PieceTrie::Match PieceTrie::longest(std::string_view text) const {
    Match out{0, kNone};
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        node = child(node, text[i]);
        if (node == 0) break;
        if (value(node) != kNone) out = {i + 1, value(node)};
    }
    return out;
}

}  // namespace patchbay::text
