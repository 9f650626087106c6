// Ctrl-C of commands that work for long: the first one asks the work to end cleanly, the second ends the program at
// once, also while nothing reads its output. Used by generate and run.
#pragma once

namespace patchbay::cli {

void catch_interrupts();
bool interrupted(); // since then

}  // namespace patchbay::cli
