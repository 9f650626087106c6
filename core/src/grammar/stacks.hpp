// Stacks of states to return to, each of which shares its lower part with others; equal ones have the same number. They
// are kept as long as this. Used by the machine that runs an automaton.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "grammar/automaton.hpp"

namespace patchbay::grammar {

using StackId = uint32_t; // 0: the bottom

class Stacks {
  public:
    static constexpr uint32_t kMaxDepth = 100'000;
    struct Entry {
        StateId to;
        StackId parent;
        uint32_t depth;
    };

    StackId push(StateId to, StackId parent) {
        const auto next = static_cast<StackId>(entries_.size());
        const auto [at, fresh] = ids_.try_emplace(uint64_t{to} << 32 | parent, next);
        if (fresh) entries_.push_back({to, parent, entries_[parent].depth + 1});
        return at->second;
    }
    const Entry& operator[](StackId s) const { return entries_[s]; }
    size_t size() const { return entries_.size(); }

  private:
    std::vector<Entry> entries_{{0, 0, 0}};
    std::unordered_map<uint64_t, StackId> ids_;
};

}  // namespace patchbay::grammar
