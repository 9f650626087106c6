// Other programs that a subcommand runs and waits for: a compiler, the Python of the report.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace patchbay::cli {

enum class ProgramOutput { kShown, kDropped };

// words[0]: the program, looked for on PATH. Its exit status; 127 where it could not be started, 128 + the signal that
// ended it.
int run_program(const std::vector<std::string>& words, ProgramOutput output = ProgramOutput::kShown);

struct ProgramRun {
    int status = 127; // as above; kTimedOut where it was killed
    std::string output; // of both streams, the first mebibyte
    static constexpr int kTimedOut = 124;
};
// Keeps what it prints, and kills it after so many seconds.
ProgramRun run_quietly(const std::vector<std::string>& words, uint32_t timeout_s);

}  // namespace patchbay::cli
