// What is known of an automaton's states before any text is read: the bytes that may follow their rule, and which
// of them are alike for a while. It keeps what is computed for states small and shared.
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

    const Bytes& behind(StateId s) const { return behind_[rules_[s]]; } // some that cannot come may be among them
    // A state of the same rule that reads the same texts of up to kDepth bytes, and may end the rule at the same places
    // of them; the same one for all that are alike, itself if none is.
    StateId alike(StateId s) const { return alike_[s]; }
    bool has_likes(StateId s) const { return shared_[s]; }

  private:
    void find_behind(const Automaton&);
    void find_alike(const Automaton&);
    std::vector<bool> may_end_;   // by state: its rule may end there without a byte; none is missing
    std::vector<uint32_t> rules_; // by state, in behind_
    std::vector<Bytes> behind_;
    std::vector<StateId> alike_;
    std::vector<bool> shared_;
};

}  // namespace patchbay::grammar
