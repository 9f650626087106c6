// All pieces that a text begins with, byte by byte: Unigram's candidates and SentencePiece's user-defined symbols.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace patchbay::text {

class PieceTrie {
  public:
    static constexpr int32_t kNone = -1;
    PieceTrie() = default;
    explicit PieceTrie(std::vector<std::pair<std::string, int32_t>> pieces); // values ≥ 0; of equal pieces one counts

    bool empty() const { return nodes_.size() == 1; }
    uint32_t child(uint32_t node, char byte) const;                   // from 0, the root; 0: there is none
    int32_t value(uint32_t node) const { return nodes_[node].value; } // kNone: no piece ends here

    struct Match {
        size_t length; // 0: none
        int32_t value;
    };
    Match longest(std::string_view text) const;

  private:
    struct Node {
        uint32_t first_child = 0;
        int32_t value = kNone;
        uint16_t children = 0; // they lie together, by byte
        uint8_t byte = 0;
    };
    std::vector<Node> nodes_{1};
};

}  // namespace patchbay::text
