// The message when a plugin ends the process: by exit(), which would otherwise look like success, or by a
// fault. It names the component, the call and the step, from plugin_call.hpp.
#pragma once
#include <memory>
#include <string_view>

namespace patchbay {

// From now on exit() ends this process with exit code 1 and a message, until expect_exit(); a fatal signal prints one
// and then ends it as usual. For programs: a library must leave both to the program.
void report_crashes();
// Where the message goes; at first to standard error. A parent may want it for itself.
void report_crashes_to(int fd);
// What the message ends with, in a line of its own: what has changed while the program runs, as the history of its
// slots. At most 400 bytes are kept; empty: nothing. [one thread at a time]
void note_for_crashes(std::string_view);
// Called once the message is written, in a signal's handler or at exit: what others hear before the process ends.
void at_crash(void (*)());
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
