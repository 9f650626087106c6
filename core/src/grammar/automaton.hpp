// A compiled grammar: states with edges over bytes and calls of rules, a pushdown automaton. Immutable. Every state of
// it can reach its rule's end, so that a text which was not refused can always be completed.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "grammar/dfa.hpp"
#include "grammar/rules.hpp"

namespace patchbay::grammar {

using StateId = uint32_t;

class Automaton {
  public:
    static constexpr size_t kMaxStates = 200'000;
    static constexpr uint64_t kMaxWork = 20'000'000;

    struct Edge {
        uint8_t low, high;
        StateId to;
    };
    struct Call {
        StateId callee; // where the rule begins
        StateId to;     // once it has ended
    };
    struct State {
        uint32_t edges = 0, edges_end = 0, calls = 0, calls_end = 0;
        bool ends = false; // the rule may end here
        StateId rule = 0;  // where it begins
        bool only_ends() const { return ends && edges == edges_end && calls == calls_end; }
    };

    // Refused: rules that call themselves before they have read a byte (but for a rule's direct recursion at the left
    // of a choice, which the front end has rewritten), rules without an end, and what is too large.
    static Result<Automaton> compile(const Rules&, RuleId root, Work&);

    StateId start() const { return start_; }
    size_t state_count() const { return states_.size(); }
    const State& operator[](StateId s) const { return states_[s]; }
    std::span<const Edge> edges(const State& s) const { return {edges_.data() + s.edges, s.edges_end - s.edges}; }
    std::span<const Call> calls(const State& s) const { return {calls_.data() + s.calls, s.calls_end - s.calls}; }
    // Bytes of one class take the same edges, from any state.
    uint32_t class_of(uint8_t byte) const { return classes_[byte]; }
    uint8_t byte_of(uint32_t c) const { return of_class_[c]; } // one of them
    uint32_t class_count() const { return static_cast<uint32_t>(of_class_.size()); }
    uint64_t bytes() const { // that it takes, about
        return states_.size() * sizeof(State) + edges_.size() * sizeof(Edge) + calls_.size() * sizeof(Call);
    }

  private:
    friend class AutomatonBuilder;
    StateId start_ = 0;
    std::vector<State> states_;
    std::vector<Edge> edges_;
    std::vector<Call> calls_;
    std::array<uint8_t, 256> classes_{};
    std::vector<uint8_t> of_class_;
};

// The automaton of an expression that calls no rules.
Result<Dfa> regular(const Rules&, ExprId, Work&);

}  // namespace patchbay::grammar
