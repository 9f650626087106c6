#include "grammar/nfa.hpp"

#include <algorithm>

#include "base/refusals.hpp"

namespace patchbay::grammar {

constexpr uint64_t kLargest = 64; // states that a repetition may make by copies

Result<Nfa> Nfa::of(const Rules& rules, ExprId e, const Hoist& hoist, Work& work) {
    Nfa out(rules, hoist, work);
    const uint32_t begin = out.add();
    PB_TRY(out.end_, out.emit(e, begin));
    return out;
}

uint32_t Nfa::add() {
    states_.emplace_back();
    return static_cast<uint32_t>(states_.size() - 1);
}

Result<uint32_t> Nfa::emit(ExprId id, uint32_t from) {
    PB_CHECK(work_.spend(1));
    if (states_.size() > Automaton::kMaxStates)
        return invalid("a rule has more than " + std::to_string(Automaton::kMaxStates) + " states");
    const Expr& e = rules_[id];
    switch (e.kind) {
        case Expr::Kind::kBytes:
            for (const char c : e.bytes) {
                const uint32_t to = add();
                states_[from].edges.push_back({static_cast<uint8_t>(c), static_cast<uint8_t>(c), to});
                from = to;
            }
            return from;
        case Expr::Kind::kChars: return emit_chars(e.chars, from);
        case Expr::Kind::kSequence:
            for (const ExprId part : e.parts) {
                PB_TRY(from, emit(part, from));
            }
            return from;
        case Expr::Kind::kChoice: {
            const uint32_t end = add();
            for (const ExprId part : e.parts) {
                const uint32_t begin = add();
                states_[from].skips.push_back(begin);
                PB_TRY(const uint32_t last, emit(part, begin));
                states_[last].skips.push_back(end);
            }
            return end;
        }
        case Expr::Kind::kRepeat: return emit_repeat(e, from);
        case Expr::Kind::kJoined: return emit_joined(e, from);
        case Expr::Kind::kRule: {
            const uint32_t to = add();
            states_[from].calls.push_back({e.rule, to});
            return to;
        }
        case Expr::Kind::kAutomaton: return emit_automaton(*e.automaton, from);
    }
    return from;
}

Result<uint32_t> Nfa::emit_chars(const CodePoints& set, uint32_t from) {
    const uint32_t end = add();
    for (const ByteRanges& bytes : utf8_ranges(set)) {
        PB_CHECK(work_.spend(bytes.size()));
        uint32_t at = from;
        for (size_t i = 0; i < bytes.size(); ++i) {
            const uint32_t to = i + 1 == bytes.size() ? end : add();
            states_[at].edges.push_back({bytes[i].low, bytes[i].high, to});
            at = to;
        }
    }
    return end;
}

Result<uint32_t> Nfa::emit_repeat(const Expr& e, uint32_t from) {
    ExprId body = e.parts[0];
    const uint64_t copies = e.max == kUnbounded ? uint64_t{e.min} + 1 : e.max;
    RuleId hoisted = 0;
    const bool hoists = hoist_ && copies > 1 && rules_[body].kind != Expr::Kind::kRule &&
                        copies * rules_[body].states > kLargest && rules_[body].states > 1;
    if (hoists) hoisted = hoist_(body);
    const auto once = [&](uint32_t at) -> Result<uint32_t> {
        if (!hoists) return emit(body, at);
        PB_CHECK(work_.spend(1));
        const uint32_t to = add();
        states_[at].calls.push_back({hoisted, to});
        return to;
    };
    for (uint32_t i = 0; i < e.min; ++i) {
        PB_TRY(from, once(from));
    }
    const uint32_t end = add();
    if (e.max == kUnbounded) {
        const uint32_t again = add();
        states_[from].skips.push_back(again);
        PB_TRY(const uint32_t last, once(again));
        states_[last].skips.push_back(again);
        states_[again].skips.push_back(end);
        return end;
    }
    for (uint32_t i = e.min; i < e.max; ++i) {
        states_[from].skips.push_back(end);
        PB_TRY(from, once(from));
    }
    states_[from].skips.push_back(end);
    return end;
}

// before[i]: in front of part i, with nothing so far, or with something that a separator must follow.
Result<uint32_t> Nfa::emit_joined(const Expr& e, uint32_t from) {
    uint32_t none = add(), some = add();
    states_[from].skips.push_back(none);
    for (size_t i = 1; i < e.parts.size(); ++i) {
        const uint32_t part = add(), none_next = add(), some_next = add();
        states_[none].skips.push_back(part);
        PB_TRY(const uint32_t separated, emit(e.parts[0], some));
        states_[separated].skips.push_back(part);
        PB_TRY(const uint32_t last, emit(e.parts[i], part));
        states_[last].skips.push_back(some_next);
        if (e.needed[i - 1] == JoinedPart::Needed::kMaybe) {
            states_[none].skips.push_back(none_next);
            states_[some].skips.push_back(some_next);
        }
        none = none_next;
        some = some_next;
    }
    return some;
}

Result<uint32_t> Nfa::emit_automaton(const Dfa& dfa, uint32_t from) {
    const uint32_t end = add();
    if (dfa.states.empty()) return end;
    PB_CHECK(work_.spend(dfa.states.size()));
    const auto base = static_cast<uint32_t>(states_.size());
    states_.resize(states_.size() + dfa.states.size());
    states_[from].skips.push_back(base);
    for (uint32_t i = 0; i < dfa.states.size(); ++i) {
        for (const Dfa::Edge& edge : dfa.states[i].edges)
            states_[base + i].edges.push_back({edge.low, edge.high, base + edge.to});
        if (dfa.states[i].accepts) states_[base + i].skips.push_back(end);
    }
    return end;
}

Result<Nfa::Set> Nfa::closure(Set set, Work& work) {
    Set open = set, seen = set;
    visited_.resize(states_.size());
    visit_ += 1;
    for (const uint32_t s : set) visited_[s] = visit_;
    while (!open.empty()) {
        const uint32_t s = open.back();
        open.pop_back();
        PB_CHECK(work.spend(1 + states_[s].skips.size()));
        for (const uint32_t to : states_[s].skips)
            if (visited_[to] != visit_) {
                visited_[to] = visit_;
                seen.push_back(to);
                open.push_back(to);
            }
    }
    // Others only lead here: without them more sets are the same.
    std::erase_if(seen, [&](uint32_t s) { return s != end_ && states_[s].edges.empty() && states_[s].calls.empty(); });
    std::sort(seen.begin(), seen.end());
    return seen;
}

RuleBody::State Nfa::merged(const Set& set) const {
    RuleBody::State out;
    for (const uint32_t s : set) {
        out.edges.insert(out.edges.end(), states_[s].edges.begin(), states_[s].edges.end());
        out.calls.insert(out.calls.end(), states_[s].calls.begin(), states_[s].calls.end());
        out.ends = out.ends || s == end_;
    }
    return out;
}

Result<bool> Nfa::determinize(RuleBody& out, size_t max_states, Work& work) {
    std::map<Set, uint32_t> known;
    std::vector<const Set*> open;
    const auto number = [&](Set targets) -> Result<uint32_t> {
        std::sort(targets.begin(), targets.end());
        targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
        PB_TRY(Set closed, closure(std::move(targets), work));
        const auto [at, fresh] = known.try_emplace(std::move(closed), static_cast<uint32_t>(out.states.size()));
        if (fresh) {
            out.states.emplace_back();
            open.push_back(&at->first);
        }
        return at->second;
    };
    PB_TRY(const uint32_t start, number({0}));
    for (size_t i = start; i < open.size(); ++i) { // in the order of their numbers
        if (out.states.size() > max_states) return false;
        const RuleBody::State all = merged(*open[i]);
        PB_CHECK(work.spend(1 + all.edges.size() + all.calls.size()));
        std::vector<uint32_t> cuts; // where a range begins, or one has ended
        for (const Dfa::Edge& e : all.edges) {
            cuts.push_back(e.low);
            cuts.push_back(e.high + 1u);
        }
        std::sort(cuts.begin(), cuts.end());
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        std::vector<Set> targets(cuts.size());
        for (const Dfa::Edge& e : all.edges) {
            auto at = static_cast<size_t>(std::lower_bound(cuts.begin(), cuts.end(), e.low) - cuts.begin());
            for (; cuts[at] <= e.high; ++at) {
                PB_CHECK(work.spend(1));
                targets[at].push_back(e.to);
            }
        }
        RuleBody::State state;
        state.ends = all.ends;
        for (size_t k = 0; k + 1 < cuts.size(); ++k) {
            if (targets[k].empty()) continue;
            PB_TRY(const uint32_t to, number(std::move(targets[k])));
            const auto low = static_cast<uint8_t>(cuts[k]), high = static_cast<uint8_t>(cuts[k + 1] - 1);
            if (!state.edges.empty() && state.edges.back().to == to && state.edges.back().high + 1 == low)
                state.edges.back().high = high;
            else
                state.edges.push_back({low, high, to});
        }
        std::map<RuleId, Set> called;
        for (const RuleBody::Call& c : all.calls) called[c.rule].push_back(c.to);
        for (auto& [rule, to] : called) {
            PB_TRY(const uint32_t next, number(std::move(to)));
            state.calls.push_back({rule, next});
        }
        out.states[i] = std::move(state);
    }
    return true;
}

Result<RuleBody> Nfa::as_it_is(Work& work) {
    RuleBody out;
    for (uint32_t s = 0; s < states_.size(); ++s) {
        PB_TRY(const Set set, closure({s}, work));
        out.states.push_back(merged(set));
        PB_CHECK(work.spend(out.states.back().edges.size() + out.states.back().calls.size()));
    }
    return out;
}

Result<RuleBody> Nfa::body(Size size, Work& work) {
    RuleBody out;
    const size_t max_states = size == Size::kAny ? Automaton::kMaxStates : 256 + 4 * states_.size();
    PB_TRY(const bool all, determinize(out, max_states, work));
    if (all) return out;
    if (size == Size::kAny)
        return invalid("an expression has more than " + std::to_string(Automaton::kMaxStates) + " states");
    return as_it_is(work);
}

Result<Dfa> regular(const Rules& rules, ExprId e, Work& work) {
    if (!rules.fault().empty()) return invalid(rules.fault());
    const Nfa::Hoist none;
    PB_TRY(Nfa nfa, Nfa::of(rules, e, none, work));
    PB_TRY(RuleBody body, nfa.body(Nfa::Size::kAny, work));
    Dfa out;
    for (RuleBody::State& s : body.states) {
        if (!s.calls.empty()) return invalid("an expression that calls a rule is combined with another");
        out.states.push_back({std::move(s.edges), s.ends});
    }
    return out;
}

}  // namespace patchbay::grammar
