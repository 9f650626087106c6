// What is said when a plugin ends the process: by exit(), after which the process would pass for successful, or by a
// fault. Names the component, the call and the step; plugin_call.hpp has them.
#pragma once
#include <memory>

namespace patchbay {

// From now on exit() ends this process with exit code 1 and a message, until expect_exit(); a fatal signal prints one
// and ends it as ever. For programs: a library must leave both to the program.
void report_crashes();
// The program's work is done: exit() is its own.
void expect_exit();
// After a library was loaded, whose own functions for exit() would run before the report. [any thread]
void report_exit_first();

// Room for the handler of a signal, so that a thread can report that its stack is full. For the thread that makes it.
class SignalStack {
  public:
    SignalStack();
    ~SignalStack();
    SignalStack(const SignalStack&) = delete;
    SignalStack& operator=(const SignalStack&) = delete;

  private:
    std::unique_ptr<char[]> memory_;
};

}  // namespace patchbay
