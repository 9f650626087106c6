// Steps and requests as a trace: each step with its phases and plugin calls, each sequence as a track with its time in
// the queue, its prefill chunks, decoding and preemptions; swaps as marks; queues and pages as counters. A step costs
// O(what it computes + what was preempted).
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "engine/loop/step_observer.hpp"
#include "engine/request/ids.hpp"
#include "engine/trace/trace_file.hpp"

namespace patchbay::engine {

class Sequences;
struct StepReport;

class StepTrace final : public StepObserver {
  public:
    StepTrace(std::unique_ptr<TraceFile>, const Sequences&);

    void on_placed(const std::vector<Placed>&) override;
    void on_end(const StepReport&) override;
    Result<> close(); // what is under way ends here
    std::unique_ptr<TraceFile> give_file(); // likewise; nothing may be called after it

  private:
    struct Item { // of the step under way
        RequestId id, group;
        uint32_t tokens, cached_tokens, preemptions;
        uint64_t arrival_ns;
        bool decodes;
    };
    struct Lane { // of a sequence
        uint64_t begin_ns = 0, end_ns = 0; // of what is under way; when its latest step ended
        uint64_t step = 0;                 // the latest one that computed it
        uint32_t steps = 0, tokens = 0;    // of decoding under way; 0: none is
        uint32_t preemptions = 0;
        bool in_flight = false;            // the latest step that computed it has yet to come back
    };

    void write_step(const StepReport&);
    void write_phases(const StepReport&);
    void follow(const Item&, const StepReport&);
    void end_decoding(RequestId, Lane&);

    void end_all();

    std::unique_ptr<TraceFile> file_;
    const Sequences& sequences_;
    std::vector<Item> items_;
    std::map<RequestId, Lane> lanes_;
};

}  // namespace patchbay::engine
