#include "grammar/rules.hpp"

#include <algorithm>

namespace patchbay::grammar {
namespace {

uint64_t size_of(const Dfa& dfa) {
    uint64_t out = dfa.states.size() * sizeof(Dfa::State);
    for (const Dfa::State& s : dfa.states) out += s.edges.size() * sizeof(Dfa::Edge);
    return out;
}

uint64_t size_of(const Expr& e) {
    return sizeof(Expr) + e.bytes.size() + e.chars.ranges().size_bytes() + e.parts.size() * sizeof(ExprId) +
           e.needed.size() * sizeof(JoinedPart::Needed) + (e.automaton ? size_of(*e.automaton) : 0);
}

}  // namespace

ExprId Rules::add(Expr e) {
    if (exprs_.size() >= kMaxExprs) {
        fault_ = "the grammar has more than " + std::to_string(kMaxExprs) + " parts";
        return 0;
    }
    if ((bytes_ += size_of(e)) > kMaxBytes && !exprs_.empty()) {
        fault_ = "the grammar's parts take more than " + std::to_string(kMaxBytes >> 20) + " MiB";
        return 0;
    }
    e.states = states_of(e);
    exprs_.push_back(std::move(e));
    return static_cast<ExprId>(exprs_.size() - 1);
}

uint32_t Rules::states_of(const Expr& e) const {
    uint64_t out = 1;
    if (e.kind == Expr::Kind::kBytes) out = e.bytes.size();
    if (e.kind == Expr::Kind::kChars) out = e.chars.ranges().empty() || e.chars.ranges().back().high < 0x80 ? 1 : 12;
    if (e.kind == Expr::Kind::kAutomaton) out = e.automaton->states.size();
    for (const ExprId part : e.parts) out += exprs_[part].states;
    if (e.kind == Expr::Kind::kRepeat) out *= std::max<uint64_t>(e.max == kUnbounded ? e.min + 1 : e.max, 1);
    return static_cast<uint32_t>(std::min<uint64_t>(out, 1u << 30));
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

// A repetition of a repetition is one where the counts between have no gap: long chains of quantifiers become no deep
// expressions.
ExprId Rules::repeat(ExprId e, uint32_t min, uint32_t max) {
    const Expr& inner = exprs_[e];
    if (inner.kind == Expr::Kind::kRepeat && max > 0) {
        const ExprId one = inner.parts[0];
        if (inner.min == 1 && inner.max == 1) return repeat(one, min, max);
        if (inner.min == 0 && inner.max == 1) return repeat(one, 0, max);
        if (inner.min <= 1 && inner.max == kUnbounded) return repeat(one, inner.min == 0 ? 0 : min, kUnbounded);
    }
    return add({.kind = Expr::Kind::kRepeat, .parts = {e}, .min = min, .max = max});
}

ExprId Rules::counted(ExprId e, uint32_t min, uint32_t max) {
    constexpr uint32_t kFew = 512;
    const uint32_t max_copies = max == kUnbounded ? min : max;
    if (max_copies <= kFew) return repeat(e, min, max);
    uint32_t block = 64;
    while (block * block < max_copies) block *= 2;
    const RuleId one = declare("block");
    define(one, repeat(e, block, block));
    const auto blocks = [&](uint32_t from, uint32_t to) { return repeat(rule(one), from, to); };
    std::vector<ExprId> parts{blocks(min / block, min / block), repeat(e, min % block, min % block)};
    if (max == kUnbounded) {
        parts.push_back(repeat(e, 0, kUnbounded));
    } else {
        const uint32_t n = (max - min) / block, rest = (max - min) % block;
        if (n == 0) parts.push_back(repeat(e, 0, rest));
        if (n > 0)
            parts.push_back(choice({sequence({blocks(0, n - 1), repeat(e, 0, block - 1)}),
                                    sequence({blocks(n, n), repeat(e, 0, rest)})}));
    }
    return sequence(std::move(parts));
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
