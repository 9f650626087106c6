// What the engine's slots went through: said in the log, in the step's report, in the record of who is in them, and in
// the message of a crash.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "host/swap.hpp"

namespace patchbay::engine {

struct StepContext;

class SwapJournal {
  public:
    // `plugins`: one entry a slot, kept true.
    SwapJournal(StepContext& context, std::vector<host::Identity>& plugins) : context_(context), plugins_(plugins) {}

    // While one lives, the calls of the step are made, and not made again: rollbacks come after them.
    class AfterCalls {
      public:
        explicit AfterCalls(SwapJournal& journal) : journal_(journal) { journal_.after_calls_ = true; }
        ~AfterCalls() { journal_.after_calls_ = false; }
        AfterCalls(const AfterCalls&) = delete;

      private:
        SwapJournal& journal_;
    };

    void note(host::SwapRecord);
    // For the report only: one that was refused before the step's thread heard of it, and said so where it was asked
    // for; or that ended with the engine before this one.
    void note_refusal(host::SwapRecord);

  private:
    void keep(const host::SwapRecord&);

    StepContext& context_;
    std::vector<host::Identity>& plugins_;
    std::deque<std::string> history_; // the latest events, the newest first
    bool after_calls_ = false;
};

}  // namespace patchbay::engine
