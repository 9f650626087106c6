// What the steps of an engine said of its slots and their swaps, for those who ask from other threads. Fed by an
// observer of EngineThread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "config/engine_config.hpp"
#include "engine/step_report.hpp"
#include "host/registry.hpp"

namespace patchbay::serve {

struct SlotStatus {
    host::Identity identity;
    uint64_t generation = 1; // of what is in it: 1 at first, one more with each swap; a rollback brings the number back
    bool on_probation = false;
    uint64_t since_step = 0; // 0: from the start
    std::string predecessor; // while it is on probation: the one that it would give way to
    host::Settings params{}; // of what is in it, defaults included
};

struct JournalState { // after the latest step
    uint64_t steps = 0; // that were reported
    uint64_t step = 0;  // the latest one's number
    bool idle = true; // no request runs or waits
    std::vector<SlotStatus> slots;
    std::deque<host::SwapRecord> swaps; // that ended: the latest first

    const SlotStatus* slot(std::string_view kind) const; // null: there is none
    // The step in which the swap came to this state was reported: an engine makes a record known before it.
    bool knows(const host::SwapRecord&) const;
};

class SlotJournal {
  public:
    static constexpr size_t kMaxSwaps = 16; // that are kept

    SlotJournal(const std::vector<host::Identity>& at_first, const config::EngineConfig& made_of);
    void on_step(const engine::StepReport&); // by the thread that steps

    // Hot parameters of what is in a slot were changed: all that it has now. Its state, by the thread that steps.
    SlotStatus set(std::string_view kind, const host::Settings& params);

    // ---- any thread ----
    JournalState state() const;
    bool wait_for_step(uint64_t after) const; // until there were more steps; false: it was closed
    void close();                             // there will be no more

  private:
    void note(const host::SwapRecord&);

    mutable std::mutex mutex_;
    mutable std::condition_variable stepped_;
    JournalState state_;
    std::vector<SlotStatus> replaced_; // by slot: what comes back if its successor is rolled back
    std::vector<uint64_t> generations_; // by slot, given out so far
    bool closed_ = false;
};

}  // namespace patchbay::serve
