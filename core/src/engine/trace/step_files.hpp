// The files that an engine writes its steps to, as observers of its loop.
#pragma once
#include <memory>

#include "base/result.hpp"
#include "engine/trace/step_file_paths.hpp"
#include "engine/trace/trace_of.hpp"

namespace patchbay::kv {
class BlockPool;
}

namespace patchbay::engine {

class DecisionFile;
class DecisionLog;
class KvEventFeed;
class SchedulerPort;
class Sequences;
class StepObservers;
class StepTrace;
class TraceFile;

struct StepSources { // what such a file shows beside plans and reports
    const Sequences& sequences;
    const kv::BlockPool& pages;
    const SchedulerPort& scheduler;
};

class StepFiles {
  public:
    StepFiles(StepObservers&, KvEventFeed&, const StepSources&);
    ~StepFiles();

    // From the next step on. Refused: one is written already.
    Result<> write(const StepFilePaths&, const TraceOf& = {});
    // What another engine writes, on the same clock, goes on with this one in the same files. That its cache is gone
    // is said among the KV events.
    void go_on_with(StepFiles& other);
    Result<> close(); // whether all of them are on the disk

  private:
    void start(std::unique_ptr<TraceFile>);
    void start(std::unique_ptr<DecisionFile>);

    StepObservers& observers_; // of its engine
    KvEventFeed& kv_events_;   // likewise; has the file of them
    const StepSources sources_;
    std::unique_ptr<StepTrace> trace_;       // null: none is written
    std::unique_ptr<DecisionLog> decisions_; // likewise
};

}  // namespace patchbay::engine
