#include "cli/run_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child_process.hpp"
#include "base/clock.hpp"

namespace patchbay::cli {
namespace {

int exit_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

int run_program(const std::vector<std::string>& words, ProgramOutput output) {
    const SpawnWords argv(words);
    const pid_t child = fork();
    if (child == 0) {
        if (const int null = output == ProgramOutput::kDropped ? open("/dev/null", O_WRONLY) : -1; null >= 0) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
        }
        execvp(argv.get()[0], argv.get());
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 127;
    return exit_status(status);
}

ProgramRun run_quietly(const std::vector<std::string>& words, uint32_t timeout_s) {
    constexpr size_t kMaxBytes = 1 << 20;
    const SpawnWords argv(words);
    int ends[2];
    ProgramRun run;
    if (pipe2(ends, O_CLOEXEC) != 0) return run;
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0); // what it starts is killed with it
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execvp(argv.get()[0], argv.get());
        _exit(127);
    }
    close(ends[1]);
    const RealClock clock;
    const uint64_t deadline = clock.now_ns() + timeout_s * uint64_t{1'000'000'000};
    bool in_time = child > 0;
    while (in_time) {
        const uint64_t now = clock.now_ns();
        pollfd wait{ends[0], POLLIN, 0};
        in_time = now < deadline && poll(&wait, 1, static_cast<int>((deadline - now) / 1'000'000 + 1)) >= 0;
        char bytes[4096];
        const ssize_t n = wait.revents ? ::read(ends[0], bytes, sizeof bytes) : -1;
        if (n == 0) break;
        if (n > 0 && run.output.size() < kMaxBytes) run.output.append(bytes, static_cast<size_t>(n));
    }
    close(ends[0]);
    int status = 0;
    pid_t ended = 0; // which it may be long after its output
    while (in_time && (ended = waitpid(child, &status, WNOHANG)) == 0) {
        poll(nullptr, 0, 1);
        in_time = clock.now_ns() < deadline;
    }
    if (child > 0 && ended == 0) {
        kill(-child, SIGKILL);
        ended = waitpid(child, &status, 0);
    }
    if (child > 0 && ended == child) run.status = in_time ? exit_status(status) : run.kTimedOut;
    return run;
}

}  // namespace patchbay::cli
