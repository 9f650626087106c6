// Which call of which component a thread is in, and in which step: the caller notes it, for a few nanoseconds each, and
// crash_report.hpp reads it when the process ends during the call.
#pragma once
#include <cstdint>
#include <string_view>

namespace patchbay {

struct CallRecord { // its pointers outlive the call
    const char* component = nullptr; // "scheduler 'fcfs'"; null: in no call
    std::string_view call;           // "plan"
    uint64_t step = 0;               // 0: before the first one
};

CallRecord& current_call(); // of this thread

// On the caller's stack: restores the earlier record when the call returns.
class PluginCall {
  public:
    PluginCall(const char* component, std::string_view call) : before_(current_call()) {
        current_call() = {component, call, before_.step};
    }
    ~PluginCall() { current_call() = before_; }
    PluginCall(const PluginCall&) = delete;
    PluginCall& operator=(const PluginCall&) = delete;

  private:
    const CallRecord before_;
};

namespace call_record {
// Defined here, so that noting a call costs no function call.
inline constinit thread_local CallRecord of_this_thread{};
}  // namespace call_record

inline CallRecord& current_call() { return call_record::of_this_thread; }

}  // namespace patchbay
