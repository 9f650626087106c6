// Swaps that are ordered while an engine runs: one after another on a thread of its own, since a probe takes seconds
// and an outcome takes steps. Used by Admin.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "host/prober.hpp"
#include "serve/model_replacement.hpp"
#include "serve/slot_journal.hpp"
#include "serve/slot_ledger.hpp"
#include "service/live_engine.hpp"

namespace patchbay::serve {

struct SwapOrder {
    struct Part {
        engine::SwapSlot slot;
        config::PluginChoice choice;
    };
    std::vector<Part> parts; // several succeed or fail together; each of another slot
    std::shared_ptr<const host::Registry> registry;
    // Called once, on the thread of the swaps, with a record for each part: how it ended; or how far it is where the
    // engine has nothing to be on probation with: it has nothing to compute, or its steps do not call what is in the
    // slot. The failure: the engine was stopped first.
    std::function<void(const Result<std::vector<host::SwapRecord>>&)> done;
};

struct PendingSwap {
    std::string kind, plugin, state; // state: queued, preparing, draining (for a new engine), or a swap's
};

class LiveSwaps {
  public:
    static constexpr size_t kMaxQueued = 64;
    // Of a probation, after which no order waits for its end. More than those after which a scheduler that plans
    // nothing loses its slot.
    static constexpr uint64_t kUncalledSteps = 1024;

    // All outlive it. ledger: null: no supervisor wants to know. replacement: null: there is none. probation_steps: as
    // configured.
    LiveSwaps(service::LiveEngine&, SlotJournal&, std::shared_ptr<SlotLedger> ledger, ModelReplacement*,
              uint64_t probation_steps);
    ~LiveSwaps(); // stop()
    Result<> add(SwapOrder); // refused: too many are queued, or it was stopped
    // Those whose end no step up to this one has reported, so that a swap is pending until it is among the ended ones.
    std::vector<PendingSwap> pending(uint64_t reported_step);
    void stop(); // what is not settled is answered with a failure, and takes place nevertheless if it was posted

  private:
    struct Posted {
        std::string plugin;
        std::shared_ptr<host::Swap> swap;
    };

    Result<> note(const SwapOrder&, bool new_engine); // for the supervisor; refused: what ended a server before
    void loop();
    void perform(const SwapOrder&);
    bool needs_new_engine(const std::vector<engine::SwapRequest>&);
    void replace_model(const SwapOrder&);
    std::set<std::string> held_slots(const JournalState&);
    Result<std::vector<host::SwapRecord>> outcome_of(const std::vector<std::shared_ptr<host::Swap>>&);

    service::LiveEngine& engine_;
    SlotJournal& journal_;
    const std::shared_ptr<SlotLedger> ledger_;
    ModelReplacement* const replacement_;
    const uint64_t max_awaited_steps_; // of a probation
    host::Prober prober_;

    std::mutex mutex_; // of what follows
    std::condition_variable added_;
    std::deque<SwapOrder> queue_; // the first one is under way where `preparing_`
    std::vector<PendingSwap> preparing_; // the parts of one order
    std::list<Posted> posted_;
    bool stopped_ = false;
    std::thread thread_;
};

}  // namespace patchbay::serve
