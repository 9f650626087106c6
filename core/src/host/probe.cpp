#include "host/probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/numbers.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "host/library.hpp"
#include "host/private_copy.hpp"
#include "host/probe_folder.hpp"
#include "host/probe_wire.hpp"

extern char** environ;

namespace patchbay::host {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxAnswerBytes = 16u << 20;  // bytes

// From the child to here.
struct Pipe {
    Descriptor ours, theirs;

    static Result<Pipe> open() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe"));
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        constexpr int kAboveTheirs = 10;  // else the child's numbers would fall together with these
        Pipe out{Descriptor(ends[0]), Descriptor(fcntl(ends[1], F_DUPFD_CLOEXEC, kAboveTheirs))};
        close(ends[1]);
        return out;
    }
};

struct Ending {
    std::string said;
    ProbeEnding how;
    bool stopped = false;
};

// Reads the verdict until the supervisor ends, which bounds the time itself; should it not, it is killed. Its end
// counts, not that of the pipe: a process of the library may hold that open. Once `stop` can be read, it is to end all.
Ending wait_for(pid_t supervisor, const Descriptor& verdict, const Descriptor& end, uint32_t timeout_s, int stop) {
    constexpr uint64_t kGraceS = 30; // for a machine that is busy killing
    Ending ending;
    const RealClock clock;
    uint64_t deadline = clock.now_ns() + (timeout_s + kGraceS) * 1'000'000'000;
    const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, supervisor, 0)));
    bool pipe_open = true, ended = false, timed_out = false;
    const auto take = [&] {  // false: nothing more to read now
        char bytes[4096];
        const ssize_t n = read(verdict.get(), bytes, sizeof bytes);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) pipe_open = false;
        if (n > 0 && ending.said.size() < kMaxAnswerBytes) ending.said.append(bytes, static_cast<size_t>(n));
        return n > 0;
    };
    while (!ended && !timed_out) {
        pollfd waits[3] = {{process.get(), POLLIN, 0},
                           {pipe_open ? verdict.get() : -1, POLLIN, 0},
                           {ending.stopped ? -1 : stop, POLLIN, 0}};
        const uint64_t now = clock.now_ns();
        const int left_ms = now >= deadline ? 0 : static_cast<int>((deadline - now) / 1'000'000 + 1);
        const int ready = poll(waits, 3, left_ms);
        timed_out = ready == 0;
        if (ready <= 0) continue;
        if (waits[1].revents) take();
        if (waits[2].revents) {
            ending.stopped = true;
            deadline = std::min(deadline, clock.now_ns() + kGraceS * 1'000'000'000);
            kill(supervisor, SIGTERM);
        }
        ended = process.get() >= 0 ? waits[0].revents != 0 : !pipe_open;  // kernels before 5.3 have no pidfd
    }
    kill(-supervisor, SIGKILL);
    while (waitpid(supervisor, nullptr, 0) < 0 && errno == EINTR) {
    }
    while (take()) {
    }
    char line[64];
    const ssize_t n = read(end.get(), line, sizeof line);
    ending.how = read_ending({line, static_cast<size_t>(std::max<ssize_t>(n, 0))});
    if (timed_out) ending.how = {ProbeEnding::How::kTimeout, timeout_s};
    return ending;
}

ProbeReport report_of(const Ending& ending, const fs::path& library) {
    ProbeTranscript t = read_transcript(ending.said, library);
    ProbeReport report;
    report.lines = std::move(t.lines);
    const auto failed = [&](const std::string& component, const std::string& check, const std::string& reason) {
        report.lines.push_back({component, check, CheckOutcome::kFailed, reason});
    };
    const bool clean = ending.how.how == ProbeEnding::How::kExited && ending.how.value == 0;
    const bool is_slow = ending.how.how == ProbeEnding::How::kTimeout;
    if (!t.fault.empty())
        failed("", "process.verdict", t.fault);
    else if (t.open)  // the time is that of all checks, and need not be the fault of this one
        failed(t.open->component, t.open->check, describe(ending.how) + (is_slow ? " during this check" : ""));
    else if (!t.done)
        failed("", "process.verdict", describe(ending.how) + ", and without a verdict");
    // A sanitizer that complains at the end, a static's destructor that crashes.
    else if (!clean)
        failed("", "process.exit", describe(ending.how) + ", after its verdict");
    const auto first_failed = [&] {
        for (const CheckLine& line : report.lines)
            if (line.outcome == CheckOutcome::kFailed) return &line;
        return static_cast<const CheckLine*>(nullptr);
    };
    if (!t.manifest && !first_failed()) failed("", "process.verdict", "no manifest came with the verdict");
    if (const CheckLine* line = first_failed()) {
        report.check = line->check;
        report.reason = (line->component.empty() ? "" : line->component + ": ") + line->reason;
        return report;
    }
    report.manifest = std::move(t.manifest);
    report.verdict = Verdict::kOk;
    for (const ComponentManifest& c : report.manifest->components)
        if (!c.unavailable.empty()) {
            report.verdict = Verdict::kUnavailable;
            report.reason = c.unavailable;
        }
    return report;
}

std::vector<std::string> environment_with_cache(const std::string& folder) {
    std::vector<std::string> out = {"PATCHBAY_CACHE=" + folder};
    for (char** v = environ; *v; ++v)
        if (!std::string_view(*v).starts_with("PATCHBAY_CACHE=")) out.emplace_back(*v);
    return out;
}

// A whole number from an environment variable that is set.
Result<> read_variable(const char* name, uint64_t min_value, uint64_t max_value, uint64_t& out) {
    const char* const text = std::getenv(name);
    if (!text) return {};
    const auto value = parse_number<uint64_t>(text);
    if (value) out = *value;
    if (value && out >= min_value && out <= max_value) return {};
    return invalid(std::string(name) + " is '" + printable(text) + "', expected a whole number from " +
                std::to_string(min_value) + " to " + std::to_string(max_value));
}

fs::path refusal_path(const fs::path& library) { return fs::path(library).replace_extension(".refused.txt"); }

void record_refusal(const fs::path& library, const ProbeReport& report) {
    std::error_code error;
    if (fs::is_regular_file(library, error)) // best effort: a folder may be read-only
        std::ofstream(refusal_path(library)) << printable_message(report.check + ": " + report.reason) << '\n';
}

}  // namespace

Result<ProbeLimits> probe_limits() {
    const ProbeLimits usual;
    uint64_t timeout_s = usual.timeout_s, memory_mib = usual.memory_mib;
    PB_CHECK(read_variable("PATCHBAY_PROBE_TIMEOUT_S", 1, 86400, timeout_s));
    PB_CHECK(read_variable("PATCHBAY_PROBE_MEMORY_MIB", 0, uint64_t{1} << 32, memory_mib));
    return ProbeLimits{static_cast<uint32_t>(timeout_s), memory_mib};
}

std::string recorded_refusal(const fs::path& library) {
    std::string line(1024, '\0');
    std::ifstream file(refusal_path(library));
    file.read(line.data(), static_cast<std::streamsize>(line.size()));
    line.resize(static_cast<size_t>(file.gcount()));
    return printable_message(line.substr(0, line.find('\n')));
}

Result<ProbeReport> probe(const fs::path& library, const ProbeOptions& options) {
    PB_TRY(const ProbeLimits limits, probe_limits());
    const uint32_t timeout_s = options.timeout_s.value_or(limits.timeout_s);
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    const fs::path program = options.program.empty() ? self.parent_path() / "patchbay-probe" : options.program;
    if (!fs::is_regular_file(program, error)) return not_found("there is no probe program " + program.string());
    PB_TRY(const auto cache, ProbeFolder::make());
    PB_TRY(Pipe verdict, Pipe::open());
    PB_TRY(Pipe end, Pipe::open());

    const fs::path in_a_folder = library.has_parent_path() ? library : "." / library; // which is searched for others
    std::vector<std::string> words{program.string(), "--child", std::to_string(kVerdictFd),
                                   std::to_string(timeout_s), in_a_folder.string()};
    if (options.only) {
        words.push_back(options.only->kind + "/" + options.only->name + "@" + options.only->sha256);
        for (const auto& [key, value] : options.only->settings) words.push_back(key + "=" + value);
    }
    const SpawnWords arguments(std::move(words));
    const SpawnWords environment(environment_with_cache(cache->path().string()));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY,
                                     0);  // nor take what was typed for us
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO,
                                     STDOUT_FILENO);  // a plugin may print, but not among our results
    posix_spawn_file_actions_adddup2(&actions, verdict.theirs.get(), kVerdictFd);
    posix_spawn_file_actions_adddup2(&actions, end.theirs.get(), kEndingFd);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    pid_t child = 0;
    const int failed = posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.get(), environment.get());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed) return fail(code_of_open(failed), "cannot start " + program.string() + ": " + std::strerror(failed));
    verdict.theirs.reset();
    end.theirs.reset();
    const Ending ending = wait_for(child, verdict.ours, end.ours, timeout_s, options.stop);
    if (ending.stopped) return fail(StatusCode::kCancelled, "its probe was broken off");
    if (ending.how.how == ProbeEnding::How::kLost) return fail("cannot be probed here: " + describe(ending.how));
    ProbeReport report = report_of(ending, library);
    if (report.check.starts_with(kMachineFault)) return fail("cannot be probed here: " + report.reason);
    return report;
}

namespace {

// Before a manifest is touched: that of FILE.so lies also beside FILE.cpp.
Result<> check_is_library(const fs::path& file) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (status.type() == fs::file_type::not_found) return not_found("there is no such file");
    if (error) return fail("cannot be read: " + error.message());
    if (!fs::is_regular_file(status)) return invalid("it is not a regular file");
    if (file.extension() == ".so") return {};
    const fs::path beside = fs::path(file).replace_extension(".so");
    return invalid("it is not a plugin, whose name ends in .so" +
                   (fs::is_regular_file(beside, error) ? " (did you mean " + beside.string() + "?)" : ""));
}

std::string digest_of(const fs::path& file) { // empty: it cannot be read
    const auto digest = file_sha256(file);
    return digest ? *digest : "";
}

}  // namespace

Result<ProbeReport> probe_and_record(const fs::path& library, const ProbeOptions& options) {
    PB_CHECK(check_is_library(library));
    const std::string before = digest_of(library);
    PB_TRY(ProbeReport report, probe(library, options));
    // A newer build may have been probed meanwhile: what lies beside it is not of these bytes.
    if (digest_of(library) != before || (report.manifest && report.manifest->sha256 != before))
        return fail("it changed while it was probed");
    std::error_code ignored;
    if (report.manifest) {
        PB_CHECK(write_manifest(*report.manifest, manifest_path(library)));
        fs::remove(refusal_path(library), ignored);
    } else {
        fs::remove(manifest_path(library), ignored);  // an older one would vouch for other bytes
        record_refusal(library, report);
    }
    return report;
}

}  // namespace patchbay::host
