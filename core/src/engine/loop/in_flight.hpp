// Steps that were submitted and are not back, the oldest first: until a step is back its sequences count as having its
// tokens, which are placeholders; a token for a sequence that has ended meanwhile is surplus and dropped.
#pragma once
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "engine/placement/placed.hpp"
#include "kv/block_table.hpp"

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

struct InFlightStep {
    bool is_poisoned = false; // it was given an invalid token: its fault and its results are of no use
    uint64_t begin_ns = 0;    // when it was submitted
    uint32_t tokens = 0, host_pages = 0; // computed; copied to the host or back
    std::vector<Placed> items;
    std::vector<kv::BlockTable> held; // of sequences that have ended: it may write into them
};

class InFlightSteps {
  public:
    InFlightSteps(kv::KvCache& kv, uint32_t max_model_len) : kv_(kv), max_model_len_(max_model_len) {}
    ~InFlightSteps() { clear(); }
    InFlightSteps(const InFlightSteps&) = delete;
    InFlightSteps& operator=(const InFlightSteps&) = delete;

    bool any() const { return !steps_.empty(); }
    size_t count() const { return steps_.size(); }
    InFlightStep& oldest() { return steps_.front(); }
    const std::deque<InFlightStep>& all() const { return steps_; }

    void push(InFlightStep); // its sequences get placeholders for what it makes
    // It is back, or about to be: its sequences have no placeholders of it any more.
    std::span<Placed> take_back_placeholders(InFlightStep&) const;
    void drop_oldest();      // and pages that it held
    void clear();            // likewise all

    void leave(Sequence&);   // it has ended: its pages come back when the newest step does
    void poison(const Sequence&); // an invalid token was given to the newest step, if it computes the sequence
    // Why the oldest step must be back before the next one is planned: what its sequences may become depends on its
    // tokens. Empty: it need not.
    std::string_view history_reason() const;

  private:
    kv::KvCache& kv_;
    const uint32_t max_model_len_;
    std::deque<InFlightStep> steps_;
};

}  // namespace patchbay::engine
