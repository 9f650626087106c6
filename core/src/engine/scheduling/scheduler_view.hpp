// What a scheduler is shown of an engine: records of the sequences, budgets and free pages.
#pragma once
#include <vector>

#include "engine/placement/pressure.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class BeamRoom;
class PrefixHints;
class Sequences;

class SchedulerView {
  public:
    SchedulerView(const config::EngineSettings&, const Sequences&, const kv::KvCache&, PrefixHints&, BeamRoom&,
                  const PressureMonitor&);

    // But for the time. Valid until the next call.
    pb_scheduler_in show(uint64_t step);
    // With all that wait, also those who are not shown while there are no seats for their beams.
    pb_scheduler_in show_all(uint64_t step);

  private:
    bool counts_shared_pages(bool any_waits) const;

    const config::EngineSettings& settings_;
    const Sequences& sequences_;
    const kv::KvCache& kv_;
    PrefixHints& hints_;
    BeamRoom& beams_;
    const PressureMonitor& pressure_;
    std::vector<pb_sequence> running_;
};

}  // namespace patchbay::engine
