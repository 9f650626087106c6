// Facts of an automaton's states before any text is read: the bytes that may follow their rule, and which states
// are equivalent for a number of bytes. They keep the results for states small and shared.
#pragma once
#include <bitset>
#include <vector>

#include "grammar/automaton.hpp"

namespace patchbay::grammar {

class Lookahead {
  public:
    static constexpr uint32_t kDepth = 32; // bytes
    using Bytes = std::bitset<256>;

    explicit Lookahead(const Automaton&);

    const Bytes& after_rule(StateId s) const { return after_rule_[rules_[s]]; } // may include bytes that cannot follow
    // A state of the same rule that reads the same texts of up to kDepth bytes, and may end the rule at the same places
    // of them; the same representative for all equivalent states.
    StateId alike(StateId s) const { return alike_[s]; }
    bool has_likes(StateId s) const { return shared_[s]; }

  private:
    void find_after_rule(const Automaton&);
    void find_alike(const Automaton&);
    std::vector<bool> may_end_;   // by state: its rule may end there without a byte (never too few)
    std::vector<uint32_t> rules_; // by state, in after_rule_
    std::vector<Bytes> after_rule_;
    std::vector<StateId> alike_;
    std::vector<bool> shared_;
};

}  // namespace patchbay::grammar
