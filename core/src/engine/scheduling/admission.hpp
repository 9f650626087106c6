// The way into the queue: requests whose time has come, and sequences that come back to it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/request/ids.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::engine {

class PrefixHints;
class SchedulerPort;
struct Sequence;
class Sequences;
struct StepContext;

class Admission {
  public:
    // max_waiting: requests, but for preempted ones, which were accepted before; 0: no limit.
    Admission(Sequences&, PrefixHints&, SchedulerPort&, const StepContext&, uint32_t max_waiting);

    void admit();                                  // arrivals whose time has come
    std::vector<RequestId> take_refused();         // that arrived at a full queue
    bool is_full() const;
    bool is_full_by(uint64_t now_ns) const;        // with those before the next one that are to be admitted by then
    std::string full_queue() const;                // the text of it

    void put_last(Sequence&);
    void put_first(Sequence&);                     // before all that wait; the scheduler hears of it once
    void leave(Sequence&);                         // its place, whichever it is

  private:
    void announce(Sequence&, const pb_sequence&);
    size_t room() const; // in the queue, where it has a limit

    Sequences& sequences_;
    PrefixHints& hints_;
    SchedulerPort& scheduler_;
    const StepContext& context_;
    const uint32_t max_waiting_;
    std::vector<RequestId> refused_;
};

}  // namespace patchbay::engine
