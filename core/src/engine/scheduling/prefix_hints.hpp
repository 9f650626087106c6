// The records of waiting sequences that schedulers are shown, with what is cached of each: true at each plan for the
// first ones in the queue, as of their arrival for those after them. What counts is what is found when the plan is
// applied (placement/).
#pragma once
#include <array>
#include <unordered_map>

#include "engine/request/ids.hpp"
#include "kv/prefix_watch.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class BeamSearches;
struct Sequence;
class Sequences;
class Siblings;

class PrefixHints {
  public:
    PrefixHints(Sequences&, kv::KvCache&, const Siblings&, const BeamSearches&);

    pb_sequence record(const Sequence&) const; // of one that waits
    void refresh(const Sequence&);             // its record, from now on
    void refresh_siblings(RequestId request);  // that wait and can no longer count on one that runs
    void update();                             // of all that events since the last time have changed
    void forget(const Sequence&);              // it no longer waits
    void forget_all();                         // before the cache's root changes; update() watches again

    std::span<const TokenId> findable(const Sequence&) const; // tokens whose KV it may take from the prefix cache

  private:
    kv::CachedPrefix cached(const Sequence&) const;
    void choose_watched();
    void update_those_with_siblings();

    Sequences& sequences_;
    kv::KvCache& kv_;
    const Siblings& siblings_;
    const BeamSearches& beams_;
    std::array<const Sequence*, kv::PrefixWatch::kMaxPrompts> watched_{}; // by slot
    std::unordered_map<RequestId, size_t> slots_;
    static constexpr uint64_t kNever = ~0ull;
    uint64_t watched_at_ = kNever; // by the queue's count of changes
};

}  // namespace patchbay::engine
