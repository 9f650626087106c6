#include "probe/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/probe_folder.hpp"
#include "host/probe_wire.hpp"

namespace patchbay::probe {
namespace {

using host::ProbeEnding;
namespace fs = std::filesystem;

constexpr uint64_t kMaxTasks = 512;           // processes and threads, all together
constexpr uint64_t kFilePages = 512ull << 20; // bytes of libraries that a worker's peak may hold beside its memory
constexpr int kWatchMs = 20;

// ---- what processes use, by /proc ----
std::string process_folder(pid_t pid) { return "/proc/" + std::to_string(pid); }

void add_children(pid_t pid, std::vector<pid_t>& out) {
    std::error_code gone; // processes end while they are looked at
    for (fs::directory_iterator at(process_folder(pid) + "/task", gone), end; !gone && at != end; at.increment(gone)) {
        std::ifstream in(at->path() / "children");
        for (pid_t child = 0; in >> child;) out.push_back(child);
    }
}

// The sum of "Name:   123 kB" or "Name:   123" over these names.
uint64_t sum_of(const std::string& file, std::initializer_list<std::string_view> names) {
    std::ifstream in(file);
    uint64_t sum = 0;
    for (std::string line; std::getline(in, line);)
        for (const std::string_view name : names)
            if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
                uint64_t value = 0;
                if (std::istringstream(line.substr(name.size() + 1)) >> value) sum += value;
            }
    return sum;
}

// Without itself.
std::vector<pid_t> descendants(pid_t pid) {
    std::vector<pid_t> out;
    add_children(pid, out);
    for (size_t i = 0; i < out.size(); ++i) add_children(out[i], out);
    return out;
}

struct Usage {
    uint64_t memory = 0; // bytes that are not of files: own, shared and swapped
    uint64_t tasks = 0;  // processes and threads
};
// Of these together. Memory that several share counts once where it would exceed the limit otherwise.
Usage usage_of(const std::vector<pid_t>& pids, uint64_t memory_limit) {
    Usage usage;
    for (const pid_t pid : pids) {
        const std::string status = process_folder(pid) + "/status";
        usage.memory += sum_of(status, {"RssAnon", "RssShmem", "VmSwap"}) << 10;
        usage.tasks += sum_of(status, {"Threads"});
    }
    if (memory_limit == 0 || usage.memory <= memory_limit || pids.size() < 2) return usage;
    usage.memory = 0; // of pages that several have mapped, each counts its part: slower to read
    for (const pid_t pid : pids)
        usage.memory += sum_of(process_folder(pid) + "/smaps_rollup", {"Pss_Anon", "Pss_Shmem", "SwapPss"}) << 10;
    return usage;
}

uint64_t tasks_of_user(uid_t user) {
    uint64_t tasks = 0;
    std::error_code gone;
    for (fs::directory_iterator at("/proc", gone), end; !gone && at != end; at.increment(gone)) {
        const std::string name = at->path().filename().string();
        struct stat info {};
        if (name.find_first_not_of("0123456789") != name.npos || stat(at->path().c_str(), &info) != 0) continue;
        if (info.st_uid == user) tasks += sum_of(at->path() / "status", {"Threads"});
    }
    return tasks;
}

// ---- the worker and its keeper ----

struct WorkerEnd { // what the keeper reports of the worker
    int status = 0;
    uint64_t peak = 0; // bytes in memory, those of files too
};

// The worker's parent and, where the machine permits, the first process of a PID namespace: all that the library
// started ends with it, at once. It lives until it is killed, so that what is still there can be counted.
[[noreturn]] void keep(pid_t worker, int out) {
    for (;;) {
        WorkerEnd end;
        rusage usage{};
        const pid_t gone = wait4(-1, &end.status, 0, &usage);
        if (gone == worker) {
            end.peak = static_cast<uint64_t>(usage.ru_maxrss) << 10;
            (void)!write(out, &end, sizeof end);
        }
        if (gone < 0 && errno == ECHILD) pause();
    }
}

// Kills and waits until no descendant is left; this process is their subreaper, so none escapes to another parent.
void end_descendants(pid_t keeper) {
    kill(keeper, SIGKILL);
    while (waitpid(keeper, nullptr, 0) < 0 && errno == EINTR) {
    }
    for (;;) {
        const std::vector<pid_t> left = descendants(getpid());
        if (left.empty()) return;
        for (const pid_t pid : left) kill(pid, SIGKILL);
        waitpid(-1, nullptr, 0);
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
    }
}

ProbeEnding ending_of(int status) {
    if (WIFSIGNALED(status)) return {ProbeEnding::How::kSignal, static_cast<uint64_t>(WTERMSIG(status))};
    return {ProbeEnding::How::kExited, static_cast<uint64_t>(WEXITSTATUS(status))};
}

// None: within the limits.
std::optional<ProbeEnding> excess(const Supervision& s, uint64_t worker_peak) {
    const Usage usage = usage_of(descendants(getpid()), s.memory);
    if (usage.tasks > kMaxTasks) return ProbeEnding{ProbeEnding::How::kTasks, kMaxTasks};
    const uint64_t peak = worker_peak > kFilePages ? worker_peak - kFilePages : 0;
    if (s.memory > 0 && std::max(usage.memory, peak) > s.memory)
        return ProbeEnding{ProbeEnding::How::kMemory, s.memory};
    return std::nullopt;
}

// Until the worker ends, exceeds a limit, has no time left, or the caller is gone.
ProbeEnding watch(const Supervision& s, int keeper, int signals) {
    const RealClock clock;
    const uint64_t deadline = clock.now_ns() + uint64_t{s.timeout_s} * 1'000'000'000;
    for (;;) {
        pollfd waits[3] = {{keeper, POLLIN, 0}, {signals, POLLIN, 0}, {s.verdict, 0, 0}};
        const int ready = poll(waits, 3, kWatchMs);
        if (ready < 0 && errno != EINTR) return {ProbeEnding::How::kLost, 0};
        if (ready > 0 && (waits[1].revents || waits[2].revents)) return {ProbeEnding::How::kLost, 0};
        WorkerEnd end;
        const bool ended = ready > 0 && waits[0].revents;
        if (ended && read(keeper, &end, sizeof end) != static_cast<ssize_t>(sizeof end))
            return {ProbeEnding::How::kLost, 0};
        if (const auto why = excess(s, end.peak)) return *why;
        if (ended) return ending_of(end.status);
        if (clock.now_ns() >= deadline) return {ProbeEnding::How::kTimeout, s.timeout_s};
    }
}

// In a namespace of its own: /proc shows the processes of this namespace only. A GPU's driver looks itself up there.
void show_own_processes() {
    if (unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
        (void)mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
}

void prepare_worker(const Supervision& s) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TMPDIR", s.folder.c_str(), 1); // what a plugin leaves there goes with the folder
    const uid_t user = getuid();
    const rlim_t tasks = user == 0 ? RLIM_INFINITY : tasks_of_user(user) + 2 * kMaxTasks; // root has no such limit
    const rlimit value{tasks, tasks};
    if (user != 0) setrlimit(RLIMIT_NPROC, &value);
}

}  // namespace

std::optional<int> supervise(const Supervision& s) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t ours, before;
    sigemptyset(&ours);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ours, signal);
    sigprocmask(SIG_BLOCK, &ours, &before);
    const int signals = signalfd(-1, &ours, SFD_CLOEXEC);
    int ends[2];
    if (signals < 0 || pipe2(ends, O_CLOEXEC) != 0) return 1;
    // Needs privileges; without it the subreaper finds what is left. LeakSanitizer stops threads by their numbers,
    // which are those of one namespace.
#if defined(__SANITIZE_ADDRESS__)
    const bool alone = false;
#else
    const bool alone = unshare(CLONE_NEWPID) == 0;
#endif
    const pid_t keeper = fork();
    if (keeper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (alone) show_own_processes();
        close(s.ending);
        close(signals);
        close(ends[0]);
        const pid_t worker = fork();
        if (worker != 0) {
            close(s.verdict);
            if (worker < 0) _exit(1);
            keep(worker, ends[1]);
        }
        close(ends[1]);
        sigprocmask(SIG_SETMASK, &before, nullptr);
        prepare_worker(s);
        return std::nullopt;
    }
    close(ends[1]);
    ProbeEnding ending;
    if (keeper > 0) {
        ending = watch(s, ends[0], signals);
        end_descendants(keeper);
    }
    std::error_code ignored;
    if (s.folder.filename().string().starts_with(host::ProbeFolder::kPrefix)) fs::remove_all(s.folder, ignored);
    const std::string line = host::ending_line(ending);
    return write(s.ending, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : 1;
}

}  // namespace patchbay::probe
