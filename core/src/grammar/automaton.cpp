#include "grammar/automaton.hpp"

#include <algorithm>
#include <map>

#include "base/refusals.hpp"
#include "grammar/nfa.hpp"

namespace patchbay::grammar {

// The rules that the root needs, as states of one automaton.
class AutomatonBuilder {
  public:
    AutomatonBuilder(const Rules& rules, Work& work) : rules_(rules), work_(work) {}

    Result<Automaton> build(RuleId root) {
        PB_CHECK(make_bodies(root));
        const auto callers = callers_of();
        PB_CHECK(reach_ends(callers, Bytes::kStop));
        PB_CHECK(refuse_left_recursion());
        PB_TRY(productive_, reach_ends(callers, Bytes::kPass));
        if (!productive_[number_.at(root)]) return invalid("nothing matches: there is no text that ends");
        return assemble();
    }

  private:
    enum class Bytes { kStop, kPass };
    struct Place {
        uint32_t rule, state;
    };

    // Numbers rules in the order in which they are met; large parts that are repeated become rules of their own.
    Result<> make_bodies(RuleId root) {
        const auto meet = [&](RuleId r) {
            if (number_.try_emplace(r, static_cast<uint32_t>(order_.size())).second) order_.push_back(r);
        };
        std::map<ExprId, RuleId> hoisted;
        std::vector<ExprId> bodies; // of those that are hoisted
        const Nfa::Hoist hoist = [&](ExprId e) {
            const auto rule = static_cast<RuleId>(rules_.rule_count() + bodies.size());
            const auto [at, fresh] = hoisted.try_emplace(e, rule);
            if (fresh) bodies.push_back(e);
            return at->second;
        };
        size_t states = 0;
        meet(root);
        for (size_t i = 0; i < order_.size(); ++i) {
            const RuleId r = order_[i];
            const ExprId e = r < rules_.rule_count() ? rules_.body(r) : bodies[r - rules_.rule_count()];
            if (e == Rules::kUndefined) return invalid("rule '" + rules_.name(r) + "' is not defined");
            PB_TRY(Nfa nfa, Nfa::of(rules_, e, hoist, work_));
            PB_TRY(RuleBody body, nfa.body(Nfa::Size::kBudgeted, work_));
            for (RuleBody::State& s : body.states)
                for (RuleBody::Call& c : s.calls) {
                    meet(c.rule);
                    c.rule = number_.at(c.rule);
                }
            states += body.states.size();
            if (states > Automaton::kMaxStates)
                return invalid("the grammar has more than " + std::to_string(Automaton::kMaxStates) + " states");
            bodies_.push_back(std::move(body));
        }
        return {};
    }

    std::vector<std::vector<Place>> callers_of() const { // by rule: where calls of it return to
        std::vector<std::vector<Place>> out(bodies_.size());
        for (uint32_t r = 0; r < bodies_.size(); ++r)
            for (uint32_t s = 0; s < bodies_[r].states.size(); ++s)
                for (const RuleBody::Call& c : bodies_[r].states[s].calls) out[c.rule].push_back({r, s});
        return out;
    }

    // By rule: whether its end can be reached, with or without bytes. A call is passed once its rule's end is known to
    // be reached.
    Result<std::vector<bool>> reach_ends(const std::vector<std::vector<Place>>& callers, Bytes bytes) {
        std::vector<bool> done(bodies_.size());
        seen_.clear();
        for (const RuleBody& body : bodies_) seen_.emplace_back(body.states.size());
        std::vector<Place> open;
        const auto visit = [&](uint32_t rule, uint32_t state) {
            if (seen_[rule][state]) return;
            seen_[rule][state] = true;
            open.push_back({rule, state});
        };
        for (uint32_t r = 0; r < bodies_.size(); ++r) visit(r, 0);
        while (!open.empty()) {
            const auto [r, s] = open.back();
            open.pop_back();
            const RuleBody::State& state = bodies_[r].states[s];
            PB_CHECK(work_.spend(1 + state.edges.size() + state.calls.size()));
            if (bytes == Bytes::kPass)
                for (const Dfa::Edge& e : state.edges) visit(r, e.to);
            for (const RuleBody::Call& c : state.calls)
                if (done[c.rule]) visit(r, c.to);
            if (!state.ends || done[r]) continue;
            done[r] = true;
            for (const Place caller : callers[r]) {
                if (!seen_[caller.rule][caller.state]) continue; // it will find the rule done
                PB_CHECK(work_.spend(1));
                for (const RuleBody::Call& c : bodies_[caller.rule].states[caller.state].calls)
                    if (c.rule == r) visit(caller.rule, c.to);
            }
        }
        return done;
    }

    // seen_: what rules reach without bytes.
    Result<> refuse_left_recursion() {
        enum class Mark : uint8_t { kNew, kOpen, kDone };
        std::vector<std::vector<uint32_t>> first(bodies_.size());
        for (uint32_t r = 0; r < bodies_.size(); ++r)
            for (uint32_t s = 0; s < bodies_[r].states.size(); ++s)
                if (seen_[r][s])
                    for (const RuleBody::Call& c : bodies_[r].states[s].calls) first[r].push_back(c.rule);
        std::vector<Mark> marks(bodies_.size());
        for (uint32_t root = 0; root < bodies_.size(); ++root) {
            std::vector<std::pair<uint32_t, size_t>> path;
            if (marks[root] == Mark::kNew) path.emplace_back(root, 0);
            while (!path.empty()) {
                auto& [r, next] = path.back();
                marks[r] = Mark::kOpen;
                PB_CHECK(work_.spend(1));
                if (next == first[r].size()) {
                    marks[r] = Mark::kDone;
                    path.pop_back();
                    continue;
                }
                const uint32_t to = first[r][next++];
                if (marks[to] == Mark::kOpen) return invalid(left_recursion(path, to));
                if (marks[to] == Mark::kNew) path.emplace_back(to, 0);
            }
        }
        return {};
    }

    std::string left_recursion(const std::vector<std::pair<uint32_t, size_t>>& path, uint32_t rule) const {
        std::string name;
        for (auto at = path.rbegin(); at != path.rend(); ++at) {
            if (order_[at->first] < rules_.rule_count()) name = rules_.name(order_[at->first]);
            if (at->first == rule) break;
        }
        return "rule '" + name +
               "' calls itself before anything is read: left recursion through other rules, or in a "
               "repetition, is not supported (write it as 'x (y)*')";
    }

    Result<Automaton> assemble() {
        Automaton out;
        std::vector<std::vector<StateId>> ids(bodies_.size());
        StateId next = 0;
        for (uint32_t r = 0; r < bodies_.size(); ++r) {
            PB_TRY(const std::vector<bool> kept, useful(r));
            ids[r].assign(kept.size(), UINT32_MAX);
            for (size_t s = 0; s < kept.size(); ++s)
                if (kept[s]) ids[r][s] = next++;
        }
        std::array<bool, 257> cuts{};
        cuts[0] = true;
        for (uint32_t r = 0; r < bodies_.size(); ++r)
            for (uint32_t s = 0; s < ids[r].size(); ++s) {
                if (ids[r][s] == UINT32_MAX) continue;
                const RuleBody::State& from = bodies_[r].states[s];
                Automaton::State to{static_cast<uint32_t>(out.edges_.size()),
                                    0,
                                    static_cast<uint32_t>(out.calls_.size()),
                                    0,
                                    from.ends,
                                    ids[r][0]};
                for (const Dfa::Edge& e : from.edges) {
                    if (ids[r][e.to] == UINT32_MAX) continue;
                    out.edges_.push_back({e.low, e.high, ids[r][e.to]});
                    cuts[e.low] = cuts[e.high + 1u] = true;
                }
                for (const RuleBody::Call& c : from.calls)
                    if (productive_[c.rule] && ids[r][c.to] != UINT32_MAX)
                        out.calls_.push_back({ids[c.rule][0], ids[r][c.to]});
                to.edges_end = static_cast<uint32_t>(out.edges_.size());
                to.calls_end = static_cast<uint32_t>(out.calls_.size());
                out.states_.push_back(to);
            }
        for (uint32_t byte = 0; byte < 256; ++byte) {
            if (cuts[byte]) out.of_class_.push_back(static_cast<uint8_t>(byte));
            out.classes_[byte] = static_cast<uint8_t>(out.of_class_.size() - 1);
        }
        out.start_ = ids[0][0];
        return out;
    }

    // By state: whether the rule begins there or gets there, and can get to its end. seen_: what it gets to.
    Result<std::vector<bool>> useful(uint32_t r) {
        const auto& states = bodies_[r].states;
        std::vector<bool> out(states.size());
        if (!productive_[r]) return out;
        std::vector<std::vector<uint32_t>> from(states.size());
        std::vector<uint32_t> open;
        for (uint32_t s = 0; s < states.size(); ++s) {
            PB_CHECK(work_.spend(1 + states[s].edges.size() + states[s].calls.size()));
            for (const Dfa::Edge& e : states[s].edges) from[e.to].push_back(s);
            for (const RuleBody::Call& c : states[s].calls)
                if (productive_[c.rule]) from[c.to].push_back(s);
            if (states[s].ends) open.push_back(s);
        }
        while (!open.empty()) {
            const uint32_t s = open.back();
            open.pop_back();
            if (out[s] || !seen_[r][s]) continue;
            out[s] = true;
            open.insert(open.end(), from[s].begin(), from[s].end());
        }
        return out;
    }

    const Rules& rules_;
    Work& work_;
    std::map<RuleId, uint32_t> number_;
    std::vector<RuleId> order_;    // by number
    std::vector<RuleBody> bodies_; // likewise; calls by number
    std::vector<bool> productive_; // likewise
    std::vector<std::vector<bool>> seen_;
};

Result<Automaton> Automaton::compile(const Rules& rules, RuleId root, Work& work) {
    if (!rules.fault().empty()) return invalid(rules.fault());
    return AutomatonBuilder(rules, work).build(root);
}

}  // namespace patchbay::grammar
