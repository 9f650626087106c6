// A compiled grammar over a vocabulary, and where a text stands in it: which tokens may come next, advanced token by
// token and rolled back. Used by one thread at a time; texts of the same grammar share what was computed.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/automaton.hpp"
#include "grammar/lookahead.hpp"
#include "grammar/machine.hpp"
#include "grammar/vocabulary.hpp"

namespace patchbay::grammar {

class Grammar {
  public:
    static constexpr uint64_t kPrepareWork = 5'000'000;
    static constexpr uint64_t kMaxMachineBytes = Machine::kMaxBytes, kMaxTokenBytes = 64u << 20;

    Grammar(Automaton, std::shared_ptr<const Vocabulary>);

    const Automaton& automaton() const { return automaton_; }
    const Vocabulary& vocabulary() const { return *vocabulary_; }
    // Computes what states allow, as far as so many looks at tree nodes and kPrepareWork steps go, or until a state is
    // too ambiguous; the rest is computed when it is needed.
    void prepare(uint64_t nodes);
    // That it took at the end of its last use, about. [any thread]
    uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  private:
    friend class Matcher;
    // What a state allows whatever its stack: tokens that stay within its rule, and nodes of the tree in front of which
    // the rule may end, so that the stack decides. Shared by states that Lookahead::kDepth bytes cannot distinguish.
    struct StateTokens {
        std::vector<uint32_t> mask;   // either a mask,
        std::vector<TokenId> ids;     // or the few of them
        std::vector<uint32_t> after_rule; // nodes
        std::vector<uint32_t> deep;   // nodes at the last of those bytes, with others below
        bool ends_at_once = false;
    };
    const StateTokens& tokens_of(Machine&, StateId);                             // until the next call
    void allow(Machine&, ConfigId, Vocabulary::Place, std::span<uint32_t> mask); // or a fault of the machine
    template <class OnNode>
    void walk(Machine&, const TokenTree&, uint32_t node, ConfigId, const OnNode&);
    const std::shared_ptr<Machine>& machine(); // the one to go on with
    void measure();

    Automaton automaton_;
    Lookahead lookahead_;
    std::shared_ptr<const Vocabulary> vocabulary_;
    std::shared_ptr<Machine> machine_;
    std::unordered_map<StateId, StateTokens> state_tokens_;
    const StateTokens incomplete_{}; // the result for a machine with a fault, which is not used
    uint64_t token_bytes_ = 0, walked_ = 0;
    std::atomic<uint64_t> bytes_ = 0;
    std::vector<uint32_t> first_mask_; // of an empty text, where first tokens are different; empty: not computed yet
    std::vector<ConfigId> path_;       // of a walk, by depth
    std::vector<TokenId> found_;       // of a walk
};

class Matcher { // cheap to copy
  public:
    static constexpr size_t kMaxRollback = 256; // tokens that can be rolled back, at least
    // begins: where the first token is in its text
    explicit Matcher(std::shared_ptr<Grammar>, Vocabulary::Place begins = Vocabulary::Place::kFirst);

    // false: no text goes on like that; nothing has changed then. Special tokens never do. Fails where a text is too
    // ambiguous to follow.
    Result<bool> advance(TokenId);
    void roll_back(size_t tokens);                                                   // at most kMaxRollback
    size_t length() const { return length_; }                                        // tokens
    bool complete() const { return machine_->ends(path_.back()); }                   // the text may end here
    bool finished() const { return complete() && !machine_->goes_on(path_.back()); } // it must
    // Sets the bits of the tokens that may come next, and clears the others. No token at all, where the text is not
    // complete: the vocabulary cannot spell what must come.
    Result<> allow(std::span<uint32_t> mask);

  private:
    Result<> follow(); // the grammar's machine
    Result<> check();  // that it has no fault
    Vocabulary::Place place() const { return length() == 0 ? begins_ : Vocabulary::Place::kLater; }
    std::shared_ptr<Grammar> grammar_;
    std::shared_ptr<Machine> machine_;
    std::vector<ConfigId> path_; // after the latest tokens, and before them
    size_t length_ = 0;
    Vocabulary::Place begins_;
};

}  // namespace patchbay::grammar
