// From the steps of a run to numbers of it: queue, KV cache, batches, graphs, drafts, time inside plugins.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "engine/step_report.hpp"
#include "experiment/metric_list.hpp"
#include "experiment/record.hpp"

namespace patchbay::experiment {

const MetricList& step_metrics(); // in their order

class StepNumbers {
  public:
    // A sequence got tokens in the step that is reported next.
    void got(uint64_t tokens);
    void add(const engine::StepReport&);
    void leave_out(); // the step that is reported next
    // One for each of step_metrics() that there is data for.
    std::vector<NamedNumber> numbers() const;

  private:
    class Level { // what holds after a step, weighted by the step's time
      public:
        void add(double value, double time);
        bool empty() const { return parts_.empty(); }
        double mean() const;
        double p99() const; // the smallest value that is not exceeded in 99 % of the time
        double max() const;

      private:
        struct Part {
            double value, time;
        };
        std::vector<Part> parts_;
    };

    Level waiting_, waiting_tokens_, oldest_wait_ms_, kv_;
    double used_slots_ = 0, empty_slots_ = 0;         // of KV pages, weighted by the time of steps
    uint64_t steps_ = 0, passes_ = 0, sequences_ = 0; // passes: steps that computed something
    uint64_t tokens_ = 0, padded_ = 0, drafted_ = 0, accepted_ = 0, lost_ = 0;
    uint64_t given_ = 0, given_to_ = 0;          // tokens, and the sequences that got them, once for each step
    uint64_t step_given_ = 0, step_given_to_ = 0; // in the step that is yet to be reported
    uint64_t replayed_ = 0;
    std::map<std::string_view, uint64_t> misses_; // of graphs, by reason
    std::vector<uint64_t> calls_ns_;              // inside plugins, as kCalls
};

}  // namespace patchbay::experiment
