// From a rule's expression to its states: Thompson's construction, then sets of states (Aho, Sethi, Ullman,
// section 3.7) over bytes and calls. Used by the compiler of automata alone.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "grammar/automaton.hpp"

namespace patchbay::grammar {

struct RuleBody { // begins in state 0
    struct Call {
        RuleId rule;
        uint32_t to;
    };
    struct State {
        std::vector<Dfa::Edge> edges;
        std::vector<Call> calls;
        bool ends = false;
    };
    std::vector<State> states;
};

class Nfa {
  public:
    using Hoist = std::function<RuleId(ExprId)>; // a large part that is repeated becomes a rule; null: it is copied

    static Result<Nfa> of(const Rules&, ExprId, const Hoist&, Work&);
    // kBudgeted: an expression whose sets of states grow too large keeps its own states, several of which
    // may then be current at once.
    enum class Size { kBudgeted, kAny };
    Result<RuleBody> body(Size, Work&);

  private:
    struct State {
        std::vector<uint32_t> skips;
        std::vector<Dfa::Edge> edges;
        std::vector<RuleBody::Call> calls;
    };
    using Set = std::vector<uint32_t>; // sorted

    Nfa(const Rules& rules, const Hoist& hoist, Work& work) : rules_(rules), hoist_(hoist), work_(work) {}
    uint32_t add();
    Result<uint32_t> emit(ExprId, uint32_t from); // the state after it
    Result<uint32_t> emit_chars(const CodePoints&, uint32_t from);
    Result<uint32_t> emit_repeat(const Expr&, uint32_t from);
    Result<uint32_t> emit_joined(const Expr&, uint32_t from);
    Result<uint32_t> emit_automaton(const Dfa&, uint32_t from);
    Result<Set> closure(Set, Work&);
    RuleBody::State merged(const Set&) const;
    Result<bool> determinize(RuleBody&, size_t max_states, Work&); // false: there are more
    Result<RuleBody> as_it_is(Work&);

    const Rules& rules_;
    const Hoist& hoist_;
    Work& work_;
    std::vector<State> states_;
    uint32_t end_ = 0;
    std::vector<uint32_t> visited_; // by state: the last closure that contained it
    uint32_t visit_ = 0;
};

}  // namespace patchbay::grammar
