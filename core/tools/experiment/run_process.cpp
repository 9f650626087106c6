#include "experiment/run_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/child_process.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"

namespace patchbay::experiment {
namespace {

std::string signal_text(int signal) {
    const char* const name = sigabbrev_np(signal);
    std::string out = "ended by " + (name ? "SIG" + std::string(name) : "signal " + std::to_string(signal));
    if (signal == SIGKILL) out += ", as the system does where memory runs out";
    return out;
}

}  // namespace

Result<std::unique_ptr<RunProcess>> RunProcess::start(const std::filesystem::path& program, const Job& job,
                                                      RunListener& listener) {
    int pair[2], pipe_ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return fail(system_error("cannot make a socket pair"));
    Descriptor ours(pair[0]), theirs(pair[1]);
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe"));
    Descriptor words(pipe_ends[0]), their_words(pipe_ends[1]);
    // Above the numbers that they get in the child, so that neither is closed by the other's taking its place.
    const Descriptor socket(fcntl(theirs.get(), F_DUPFD_CLOEXEC, kLastWordsFd + 1)),
        line(fcntl(their_words.get(), F_DUPFD_CLOEXEC, kLastWordsFd + 1));
    if (socket.get() < 0 || line.get() < 0) return fail(system_error("cannot copy a descriptor"));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO); // keeps it out of our results
    posix_spawn_file_actions_adddup2(&actions, socket.get(), kRunFd);
    posix_spawn_file_actions_adddup2(&actions, line.get(), kLastWordsFd);
    // A group of its own: Ctrl-C is for the parent, which decides, and what a plugin starts can be ended with it.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    std::error_code no_link;
    const auto named = std::filesystem::read_symlink(program, no_link);
    std::string name = no_link ? program.string() : named.string(), command = "run-child";
    char* const arguments[] = {name.data(), command.data(), nullptr};
    pid_t child = 0;
    const int failed = posix_spawn(&child, program.c_str(), &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed) return fail(code_of_open(failed), "cannot start " + name + ": " + std::strerror(failed));
    std::unique_ptr<RunProcess> run(new RunProcess(child, ours.release(), words.release(), listener));
    (void)write_all(run->fd_, frame_of(Word::kJob, job)); // of one that has ended already read() says why
    return run;
}

RunProcess::~RunProcess() {
    if (child_ > 0) {
        kill();
        while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    if (fd_ >= 0) close(fd_);
    close(last_words_);
}

void RunProcess::ask_to_end() {
    if (child_ > 0) ::kill(child_, SIGTERM);
}

void RunProcess::kill() {
    if (child_ > 0) ::kill(-child_, SIGKILL);
}

bool RunProcess::read() {
    if (child_ <= 0) return false;
    int status = 0;
    const bool ended = waitpid(child_, &status, WNOHANG) == child_; // first: what it wrote before is then there
    take_bytes();
    if (!ended) return true;
    kill(); // what it left running
    child_ = 0;
    why_ = reason_of(status);
    return false;
}

void RunProcess::take_bytes() {
    char part[1 << 16];
    while (fd_ >= 0 && !unreadable_) {
        const ssize_t n = recv(fd_, part, sizeof part, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            close(std::exchange(fd_, -1));
            return;
        }
        read_bytes_ += static_cast<uint64_t>(n);
        frames_.add({part, static_cast<size_t>(n)});
        while (const auto frame = frames_.next()) take(*frame);
        unreadable_ |= frames_.broken();
    }
    if (unreadable_) kill();
}

void RunProcess::take(const Frame& frame) {
    const auto read = [&](auto&... values) { return unpack(frame.body, values...); };
    bool ok = false;
    std::string kind, component, name;
    double value = 0;
    uint64_t a = 0, b = 0;
    uint32_t tokens = 0, n = 0;
    switch (frame.word) {
        case Word::kEngine: {
            engine::EngineFacts facts{};
            if ((ok = read(facts))) listener_.on_engine(facts);
            break;
        }
        case Word::kRequest:
            if ((ok = read(a, b, tokens, n))) listener_.on_request(a, b, tokens, n);
            break;
        case Word::kOutput: {
            engine::RequestOutput output;
            if ((ok = read(output))) listener_.on_output(output);
            break;
        }
        case Word::kStep: {
            engine::StepReport report;
            if ((ok = read(report))) listener_.on_step(report);
            break;
        }
        case Word::kRows: {
            Rows rows;
            if ((ok = read(rows))) listener_.on_rows(std::move(rows));
            break;
        }
        case Word::kProgress:
            if ((ok = read(a, b))) listener_.on_progress(a, b);
            break;
        case Word::kAdd:
            if ((ok = read(kind, component, name, value))) listener_.add(kind, component, name, value);
            break;
        case Word::kSet:
            if ((ok = read(kind, component, name, value))) listener_.set(kind, component, name, value);
            break;
        case Word::kDone:
            ok = read(ran_.emplace().record, ran_->loaded);
            if (!ok) ran_.reset();
            break;
        case Word::kTried: ok = read(tried_.emplace()); break;
        case Word::kScored: ok = read(scored_.emplace()); break;
        case Word::kFailed: ok = read(why_); break;
        case Word::kJob: break;
    }
    unreadable_ |= !ok;
}

std::string RunProcess::reason_of(int status) {
    constexpr std::string_view kProgram = "patchbay: ";
    char line[4096];
    const ssize_t n = fcntl(last_words_, F_SETFL, O_NONBLOCK) == 0 ? ::read(last_words_, line, sizeof line) : 0;
    std::string words(line, n > 0 ? static_cast<size_t>(n) : 0);
    if (words.starts_with(kProgram)) words.erase(0, kProgram.size());
    words = printable_message(words.substr(0, words.find('\n')));
    if (unreadable_) return "its process sent what cannot be read";
    if (!words.empty()) return words;
    if (!why_.empty()) return why_;
    if (WIFSIGNALED(status)) return signal_text(WTERMSIG(status));
    const bool has_result = ran_ || tried_ || scored_;
    if (has_result && WEXITSTATUS(status) == 0) return "";
    return std::string(has_result ? "ended" : "ended without a result,") + " with exit code " +
           std::to_string(WEXITSTATUS(status));
}

}  // namespace patchbay::experiment
