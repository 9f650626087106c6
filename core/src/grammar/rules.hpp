// What all front ends translate into: named rules of expressions over bytes, characters and other rules. The compiler
// makes an automaton of them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "grammar/code_points.hpp"
#include "grammar/dfa.hpp"

namespace patchbay::grammar {

using RuleId = uint32_t;
using ExprId = uint32_t;
inline constexpr uint32_t kUnbounded = UINT32_MAX;

struct JoinedPart {
    ExprId expr;
    enum class Needed { kAlways, kMaybe } needed;
};

struct Expr {
    enum class Kind {
        kBytes,     // these bytes in order; none: the empty text
        kChars,     // one character of the set; an empty set: nothing matches
        kSequence,  // parts
        kChoice,    // parts
        kRepeat,    // parts[0], min to max times
        kJoined,    // parts in order, some but not all may be missing; parts[0] between those that are present
        kRule,      // number
        kAutomaton, // of bytes
    } kind;
    std::string bytes{};
    CodePoints chars{};
    std::vector<ExprId> parts{};
    std::vector<JoinedPart::Needed> needed{}; // of parts[1] and on
    uint32_t min = 0, max = 0;
    RuleId rule = 0;
    uint32_t states = 0; // that the compiler makes of it by copies of its parts, about; Rules sets it
    std::shared_ptr<const Dfa> automaton{};
};

class Rules {
  public:
    static constexpr size_t kMaxExprs = 200'000, kMaxRules = 20'000;
    static constexpr uint64_t kMaxBytes = 64u << 20; // that they take together

    ExprId bytes(std::string);
    ExprId empty() { return bytes(""); }
    ExprId nothing() { return chars({}); }
    ExprId chars(CodePoints);
    ExprId sequence(std::vector<ExprId>);
    ExprId choice(std::vector<ExprId>);
    ExprId repeat(ExprId, uint32_t min, uint32_t max); // kUnbounded
    // The same texts as repeat() with few states, but two ways to read them: for high counts.
    ExprId counted(ExprId, uint32_t min, uint32_t max);
    ExprId optional(ExprId e) { return repeat(e, 0, 1); }
    ExprId joined(ExprId separator, const std::vector<JoinedPart>&);
    ExprId rule(RuleId);
    ExprId automaton(Dfa);

    RuleId declare(std::string name);
    void define(RuleId, ExprId);
    static constexpr ExprId kUndefined = UINT32_MAX;
    ExprId body(RuleId r) const { return rules_[r].body; }
    const std::string& name(RuleId r) const { return rules_[r].name; }
    size_t rule_count() const { return rules_.size(); }
    const Expr& operator[](ExprId e) const { return exprs_[e]; }

    // Set when there are too many rules, or they are too large; what was made then must not be used.
    const std::string& fault() const { return fault_; }

  private:
    struct Rule {
        std::string name;
        ExprId body = kUndefined;
    };
    ExprId add(Expr);
    uint32_t states_of(const Expr&) const;
    std::vector<Expr> exprs_;
    std::vector<Rule> rules_;
    uint64_t bytes_ = 0;
    std::string fault_;
};

}  // namespace patchbay::grammar
