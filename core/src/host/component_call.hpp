// A call of a component's function: noted for crash_report.hpp, and held to rule 5 of abi.h, that no object is in two
// calls at once. That is checked where the environment has PATCHBAY_CHECK_CALLS=1: a host that breaks the rule aborts.
#pragma once
#include <atomic>
#include <string_view>

#include "base/plugin_call.hpp"

namespace patchbay::host {

class CallOwner { // of a component: the thread that is in a call of it
  public:
    // By `thread`, which is then the owner; returns the owner before it.
    const CallRecord* enter(const CallRecord& thread) { return thread_.exchange(&thread); }
    void leave(const CallRecord* before) { thread_.store(before); }

  private:
    std::atomic<const CallRecord*> thread_ = nullptr;
};

extern const bool kChecksCalls;
[[noreturn]] void end_at_second_call(const char* component, std::string_view call, const CallRecord& first);

// On the caller's stack.
class ComponentCall {
  public:
    // on_any_thread: a function that abi.h allows beside others, [any].
    ComponentCall(const char* component, CallOwner& owner, std::string_view call, bool on_any_thread = false)
        : noted_(component, call), owner_(kChecksCalls && !on_any_thread ? &owner : nullptr) {
        if (!owner_) return;
        before_ = owner_->enter(current_call());
        if (before_ && before_ != &current_call()) end_at_second_call(component, call, *before_);
    }
    ~ComponentCall() {
        if (owner_) owner_->leave(before_);
    }
    ComponentCall(const ComponentCall&) = delete;
    ComponentCall& operator=(const ComponentCall&) = delete;

  private:
    const PluginCall noted_;
    CallOwner* const owner_; // null: nothing is checked
    const CallRecord* before_ = nullptr;
};

}  // namespace patchbay::host
