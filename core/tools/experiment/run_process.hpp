// A run, or a trial of a variant, in a process of its own, as the experiment that starts it sees it.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "experiment/quality.hpp"
#include "experiment/run_wire.hpp"

namespace patchbay::experiment {

// What this process runs, though a build may have put another file in its place.
inline constexpr const char* kThisProgram = "/proc/self/exe";

class RunProcess {
  public:
    // program: a patchbay, whose command run-child serves the job. The listener is called by read().
    static Result<std::unique_ptr<RunProcess>> start(const std::filesystem::path& program, const Job&, RunListener&);
    ~RunProcess(); // kills it if it runs
    RunProcess(const RunProcess&) = delete;
    RunProcess& operator=(const RunProcess&) = delete;

    int fd() const { return fd_; } // readable: read() has something to do; -1: there is nothing to wait for
    // Takes what is there, without waiting. False: the process has ended, and why() and what follows are final.
    bool read();
    void ask_to_end(); // it may still deliver what it has
    void kill();       // and everything that it started
    uint64_t read_bytes() const { return read_bytes_; } // so far

    // Empty: it did its job. "scheduler 'faulty': plan: SIGABRT (abort) in step 3", or why there is no result.
    const std::string& why() const { return why_; }
    const std::optional<RanOnce>& ran() const { return ran_; }
    const std::optional<LoadedParts>& tried() const { return tried_; }
    const std::optional<QualityScores>& scored() const { return scored_; }

  private:
    RunProcess(pid_t child, int fd, int last_words, RunListener& listener)
        : child_(child), fd_(fd), last_words_(last_words), listener_(listener) {}
    void take_bytes();
    void take(const Frame&);
    std::string reason_of(int status);

    pid_t child_;
    int fd_, last_words_;
    RunListener& listener_;
    Frames frames_;
    uint64_t read_bytes_ = 0;
    bool unreadable_ = false;
    std::string why_;
    std::optional<RanOnce> ran_;
    std::optional<LoadedParts> tried_;
    std::optional<QualityScores> scored_;
};

}  // namespace patchbay::experiment
