// The policy that chooses which cached page is evicted next: it gets what happens to cached pages in bulk, before it
// chooses. One that fails costs nothing but its choice.
#pragma once
#include <vector>

#include "engine/swap/swap_journal.hpp"
#include "host/slot.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

class KvPolicyPort final : public kv::Evictor {
  public:
    // policy: empty: the cache keeps its own order.
    KvPolicyPort(host::KvPolicy policy, kv::KvCache&, const Clock&, StepContext&, SwapJournal&);

    static constexpr size_t kPortion = 2048; // free pages that a boundary looks at, so that it takes a fraction of 1 ms

    host::Slot& slot() { return slot_; }
    const host::Component* component() const { return slot_.filled() ? &slot_.current() : nullptr; } // null: none
    // Gives the policy all that is cached, in place of all that it knows. Before its first call, and for a swap.
    Result<> adopt();
    // Before a swap: gives the next policy a portion of what is cached, after what has changed of what it got so far.
    // True: it knows all, and adopt() has only what changes until it takes the slot left to give. A failure ends it.
    Result<bool> warm_up(const host::Component& next, size_t max_pages = kPortion);
    void update();                          // gives it what has changed since its latest call
    // Its predecessor is back, which has got all changes too. False: it is not on probation.
    bool roll_back(const std::string& phase, const Failure& why);

    void cached(const kv::CachedPage&) override;
    void used(kv::BlockId) override;
    void removed(kv::BlockId) override;
    size_t choose(std::span<kv::BlockId> out) override;
    void refused(kv::BlockId) override;

  private:
    void update_previous();
    pb_kv_pages wire(const std::vector<pb_kv_page>&) const;
    void note(const pb_kv_page&);
    void note_for_next(const pb_kv_page&);
    enum class Fault { kError, kContract }; // the call failed; what it gave breaks the contract
    bool ask(std::span<kv::BlockId> out, size_t& named, Fault& fault, std::string& why);
    void count_fault(Fault, const std::string& why);

    kv::KvCache& kv_;
    const Clock& clock_;
    StepContext& context_;
    SwapJournal& journal_;
    host::Slot slot_;
    std::vector<pb_kv_page> pending_; // changes that it has not got yet
    struct WarmUp {
        const host::Component* next = nullptr; // null: there is none
        std::vector<bool> knows;               // by page: its content was given, and not removed since
        std::vector<bool> cached;              // and it is in the cache, as far as was said
        std::vector<pb_kv_page> changes;       // of these, since the latest portion
        bool knows_all = false;
    } warm_up_;
    const host::Component* chose_ = nullptr; // the one whose choice the pool has
    uint64_t faults_ = 0;
};

}  // namespace patchbay::engine
