// Other programs that a subcommand runs and waits for: a compiler, the Python of the report.
#pragma once
#include <string>
#include <vector>

namespace patchbay::cli {

enum class ProgramOutput { kShown, kDropped };

// words[0]: the program, looked for on PATH. Its exit status; 127 where it could not be started, 128 + the signal that
// ended it.
int run_program(const std::vector<std::string>& words, ProgramOutput output = ProgramOutput::kShown);

}  // namespace patchbay::cli
