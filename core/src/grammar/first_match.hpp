// Free text up to where one of several texts appears first: automata over bytes, for structural tags.
#pragma once
#include <string>
#include <vector>

#include "grammar/dfa.hpp"

namespace patchbay::grammar {

class FirstMatch {
  public:
    static constexpr size_t kMaxBytes = 4096; // of all texts together
    // texts: none empty. Fails where they are too long together.
    static Result<FirstMatch> of(const std::vector<std::string>& texts);

    Dfa none() const;                // bytes that contain none of the texts
    Dfa up_to(size_t text) const;    // bytes that end with that text and contain none of the texts before
    size_t texts() const { return count_; }

  private:
    struct Node { // Aho and Corasick 1975
        uint32_t next[256] = {};
        uint32_t fail = 0;
        std::vector<size_t> ends; // the texts that end here
    };
    Dfa automaton(bool accepts_inside, size_t text) const;
    std::vector<Node> nodes_{1};
    size_t count_ = 0;
};

}  // namespace patchbay::grammar
