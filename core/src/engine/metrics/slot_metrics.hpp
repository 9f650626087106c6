// Metrics of the components in the slots: time in their calls, faults, swaps. Part of EngineMetrics. After a swap the
// calls count for the component that is in the slot.
#pragma once
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/identity.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::host {
struct SwapRecord;
}

namespace patchbay::engine {

struct StepReport;

class SlotMetrics {
  public:
    // of_plugins: what plugins set their own metrics in.
    SlotMetrics(metrics::Metrics&, metrics::Metrics& of_plugins, const std::vector<host::Identity>& at_first);
    ~SlotMetrics(); // what is about the present ends with the engine
    // Of the engine that goes on: gauges that its plugins have set are not this one's to end.
    void replaced_by(const std::vector<host::Identity>& next);
    void on_step(const StepReport&);

  private:
    struct TimedCall {
        const char *kind, *name;
        uint64_t (*ns)(const StepReport&);
    };
    struct FaultCount {
        const char *kind, *reason;
        uint32_t (*count)(const StepReport&);
    };
    static const std::array<TimedCall, 12> kCalls;
    static const std::array<FaultCount, 8> kFaults;

    void enter(const host::Identity&);                // it is in its slot now
    void exchange(const host::Identity& from, const host::Identity& to);
    void count_calls_for(const host::Identity&);
    void on_swap(const host::SwapRecord&);
    void observe_pause(const host::SwapRecord&); // all of a transaction pause the engine together, once
    prometheus::Gauge& info(const host::Identity&);
    prometheus::Counter& swaps(const std::string& kind, const char* outcome);
    prometheus::Counter& transactions(const char* outcome);
    prometheus::Histogram& pauses(const std::string& kind);
    prometheus::Counter& faults(const host::Identity&, const char* reason);

    metrics::Metrics &all_, &of_plugins_;
    std::array<prometheus::Histogram*, 12> calls_{}; // null: of a kind whose slot is empty
    std::array<prometheus::Counter*, 8> faults_{};
    prometheus::Counter* chosen_evictions_ = nullptr;
    std::set<prometheus::Gauge*> plugins_;           // info of those that have been in a slot
    std::set<std::pair<std::string, std::string>> with_gauges_; // kind and name of these
    std::set<uint64_t> begun_transactions_, ended_transactions_; // that were counted
};

}  // namespace patchbay::engine
