// From what a request asks for to a compiled grammar, and those that were compiled before.
#pragma once
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.hpp"
#include "grammar/grammar.hpp"
#include "grammar/structured_outputs.hpp"

namespace patchbay::grammar {

inline constexpr size_t kMaxChoices = 10'000, kMaxChoiceBytes = 1u << 20;

Result<Automaton> compile(const StructuredOutputs&);

// Compiled grammars by what was asked for, those last used. Safe to use from any thread: two that ask for the same one
// compile it once.
class GrammarCache {
  public:
    using MakeVocabulary = std::function<std::shared_ptr<const Vocabulary>()>; // called once, at the first grammar
    static constexpr size_t kMaxGrammars = 64;
    static constexpr uint64_t kMaxBytes = 1u << 30; // of all together, besides the last one used
    static constexpr uint64_t kPreparedNodes = 20'000'000; // of the vocabulary's tree, before a grammar is handed out

    GrammarCache(MakeVocabulary, Clock&, uint64_t max_bytes = kMaxBytes);
    Result<std::shared_ptr<Grammar>> get(const StructuredOutputs&);
    bool made(const Grammar&) const; // and not another cache

    struct Counts {
        uint64_t compiled = 0, cached = 0, refused = 0; // calls of get()
        uint64_t compile_ns = 0;
    };
    Counts counts() const;

  private:
    using Shared = Result<std::shared_ptr<Grammar>>;
    struct Entry {
        std::string key;
        std::shared_future<Shared> grammar;
    };
    Shared make(const StructuredOutputs&);
    void forget_beyond_limit(); // mutex_ is held

    MakeVocabulary make_vocabulary_;
    Clock& clock_;
    const uint64_t max_bytes_;
    std::once_flag vocabulary_made_;
    mutable std::mutex mutex_; // of what follows
    std::shared_ptr<const Vocabulary> vocabulary_;
    std::list<Entry> entries_; // the last used first
    std::map<std::string, std::list<Entry>::iterator> by_key_;
    Counts counts_;
};

}  // namespace patchbay::grammar
