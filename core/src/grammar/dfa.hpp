// Automata over bytes, of languages without recursion: what two of them have in common, and what one has that the other
// has not. For strings and numbers of JSON Schema under several keywords at once.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace patchbay::grammar {

// What compiling may cost, in states and edges looked at: hostile input ends with a failure, at the same place always.
class Work {
  public:
    explicit Work(uint64_t max_steps) : max_steps_(max_steps), left_(max_steps) {}
    Result<> spend(uint64_t n);

  private:
    uint64_t max_steps_, left_;
};

struct Dfa {
    struct Edge {
        uint8_t low, high;
        uint32_t to;
    };
    struct State {
        std::vector<Edge> edges; // sorted, disjoint
        bool accepts = false;
    };
    std::vector<State> states; // the first one is where it begins

    bool matches(std::string_view) const;
    bool empty() const; // matches nothing
};

Result<Dfa> common(const Dfa&, const Dfa&, Work&);
Result<Dfa> without(const Dfa&, const Dfa& excluded, Work&);

}  // namespace patchbay::grammar
