// The message when a plugin ends the process: by exit(), which would otherwise look like success, or by a
// fault. It names the component, the call and the step, from plugin_call.hpp.
#pragma once
#include <memory>

namespace patchbay {

// From now on exit() ends this process with exit code 1 and a message, until expect_exit(); a fatal signal prints one
// and then ends it as usual. For programs: a library must leave both to the program.
void report_crashes();
// Where the message goes; at first to standard error. A parent may want it for itself.
void report_crashes_to(int fd);
// The program has finished: from now on exit() is its own.
void expect_exit();
// Call after a library was loaded, whose own exit handlers would otherwise run before the report. [any thread]
void report_exit_first();

// An alternate signal stack, so that a thread can report a stack overflow. For the thread that creates it.
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
