// The attention backend's slot. KV is the host's: where the new one lays out pages in the same way it goes on with them
// at once, else every sequence is computed anew.
#pragma once
#include "engine/placement/recomputation.hpp"
#include "engine/swap/swap_port.hpp"
#include "execution/attention_exchange.hpp"
#include "host/slot.hpp"

namespace patchbay::execution {
class Executor;
}

namespace patchbay::engine {

struct EngineFacts;
struct StepContext;
class SwapJournal;

class AttentionSwaps final : public SwapPort {
  public:
    AttentionSwaps(EngineFacts&, execution::Executor&, Recomputation&, const Clock&, StepContext&, SwapJournal&);
    ~AttentionSwaps() override; // nothing is computed any more

    host::Slot& slot() override { return slot_; }
    Result<> takes_swaps() const override;
    Result<> fits(host::Component& c) const override { return exchange_->check(c); }
    void enter() override;
    Result<> serves() override { return bound_; }
    const char* serves_phase() const override { return "bind"; }
    bool roll_back(const std::string& phase, const Failure& why) override;
    bool computes() const override { return true; }
    void commit() override { exchange_->forget(); }
    StepCall call_of(const StepUse&) override;

  private:
    void recompute_all();

    EngineFacts& facts_;
    execution::AttentionExchange* const exchange_; // null: it cannot be exchanged
    Recomputation& recomputation_;
    StepContext& context_;
    SwapJournal& journal_;
    host::Slot slot_;
    Result<> bound_;
};

}  // namespace patchbay::engine
