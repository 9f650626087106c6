// Stacks of a size that does not depend on `ulimit -s`, which is also what the system gives to threads. For programs.
#pragma once
#include <functional>

namespace patchbay {

// Calls work on a stack of at least 8 MiB: this thread's own, unless that is limited to less. Threads that
// start from now on have as much.
void run_with_stack(const std::function<void()>& work);

}  // namespace patchbay
