// Several sequences of one request (n, best_of, beam search), which share the KV of its prompt: the first one computes
// it while the others are held; then they take its pages over, but for the last token, whose logits each of them needs.
#pragma once
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/request/ids.hpp"

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

struct Sequence;

class Siblings {
  public:
    using Map = std::unordered_map<RequestId, std::vector<Sequence*>>;

    explicit Siblings(const kv::KvCache& kv) : kv_(kv) {}

    void add(std::vector<Sequence*> all);         // of one request, the first one first
    void hold(const Sequence& first);             // the others, until it has computed the prompt
    bool holds(const Sequence&) const;
    // Those that it held, which are to wait before all others, in this order. Where it has ended and left nothing in
    // the cache, the next one takes its place and holds the others.
    std::vector<Sequence*> release(const Sequence& first);
    bool leave(const Sequence&);                  // it has ended; whether it was the last of its request

    std::span<Sequence* const> of(RequestId request) const; // that have not ended
    // A running sibling whose KV of the prompt it can take; null: there is none.
    const Sequence* source_of(const Sequence&) const;
    const Map& all() const { return all_; }       // of requests that have not ended

  private:
    const kv::KvCache& kv_;
    Map all_;
    std::unordered_set<RequestId> holding_;
};

}  // namespace patchbay::engine
