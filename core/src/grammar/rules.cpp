#include "grammar/rules.hpp"

namespace patchbay::grammar {

ExprId Rules::add(Expr e) {
    if (exprs_.size() >= kMaxExprs) {
        fault_ = "the grammar has more than " + std::to_string(kMaxExprs) + " parts";
        return 0;
    }
    exprs_.push_back(std::move(e));
    return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId Rules::bytes(std::string text) { return add({.kind = Expr::Kind::kBytes, .bytes = std::move(text)}); }
ExprId Rules::chars(CodePoints set) { return add({.kind = Expr::Kind::kChars, .chars = std::move(set)}); }

ExprId Rules::sequence(std::vector<ExprId> parts) {
    if (parts.size() == 1) return parts[0];
    return add({.kind = Expr::Kind::kSequence, .parts = std::move(parts)});
}

ExprId Rules::choice(std::vector<ExprId> parts) {
    if (parts.size() == 1) return parts[0];
    return add({.kind = Expr::Kind::kChoice, .parts = std::move(parts)});
}

ExprId Rules::repeat(ExprId e, uint32_t min, uint32_t max) {
    return add({.kind = Expr::Kind::kRepeat, .parts = {e}, .min = min, .max = max});
}

ExprId Rules::joined(ExprId separator, const std::vector<JoinedPart>& parts) {
    Expr e{.kind = Expr::Kind::kJoined, .parts = {separator}};
    for (const JoinedPart& part : parts) {
        e.parts.push_back(part.expr);
        e.needed.push_back(part.needed);
    }
    return add(std::move(e));
}

ExprId Rules::rule(RuleId r) { return add({.kind = Expr::Kind::kRule, .rule = r}); }

ExprId Rules::automaton(Dfa dfa) {
    return add({.kind = Expr::Kind::kAutomaton, .automaton = std::make_shared<const Dfa>(std::move(dfa))});
}

RuleId Rules::declare(std::string name) {
    if (rules_.size() >= kMaxRules) {
        fault_ = "the grammar has more than " + std::to_string(kMaxRules) + " rules";
        return 0;
    }
    rules_.push_back({std::move(name)});
    return static_cast<RuleId>(rules_.size() - 1);
}

void Rules::define(RuleId r, ExprId body) { rules_[r].body = body; }

}  // namespace patchbay::grammar
