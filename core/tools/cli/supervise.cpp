#include "cli/supervise.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <utility>

#include "base/child_process.hpp"
#include "base/refusals.hpp"
#include "base/crash_report.hpp"

namespace patchbay::cli {
namespace {

// Of the addresses of a name the first of IPv4, as HttpServer takes it.
const addrinfo& chosen(const addrinfo* found) {
    for (const addrinfo* one = found; one; one = one->ai_next)
        if (one->ai_family == AF_INET) return *one;
    return *found;
}

Result<Descriptor> listen_on(const std::string& host, uint16_t port) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    const std::string where = "cannot listen on " + host + ":" + std::to_string(port);
    if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found); error)
        return fail(StatusCode::kInvalid, where + ": " + gai_strerror(error));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> held(found, freeaddrinfo);
    const addrinfo& at = chosen(found);
    Descriptor out(socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (out.get() < 0 || setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(out.get(), at.ai_addr, at.ai_addrlen) != 0 || listen(out.get(), SOMAXCONN) != 0)
        return fail(code_of_listen(errno), system_error(where));
    return out;
}

struct Pipe {
    Descriptor ours, theirs;

    static Result<Pipe> open() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe"));
        return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
    }
};

volatile std::sig_atomic_t child_of_signals = 0, was_ended = 0;

void pass_on_signals() {
    struct sigaction action {};
    action.sa_handler = [](int signal) {
        was_ended = 1;
        if (child_of_signals > 0) kill(child_of_signals, signal);
    };
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

// SIGINT and SIGTERM come once this has ended.
class HeldSignals {
  public:
    HeldSignals() {
        sigset_t held;
        sigemptyset(&held);
        for (const int signal : {SIGINT, SIGTERM}) sigaddset(&held, signal);
        sigprocmask(SIG_BLOCK, &held, &before_);
    }
    ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

  private:
    sigset_t before_{};
};

// In the child 0, whose signals are not those of its parent. -1: there is none, by errno; or an end was asked for.
pid_t fork_to_be_watched() {
    const HeldSignals held;
    if (was_ended) return errno = EINTR, -1;
    const pid_t child = fork();
    if (child == 0)
        for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    if (child > 0) child_of_signals = child;
    return child;
}

class Text { // of one pipe
  public:
    // False: it has ended.
    bool read_from(int fd) {
        char part[4096];
        const ssize_t n = ::read(fd, part, sizeof part);
        if (n < 0 && errno == EINTR) return true;
        if (n > 0) text_.append(part, static_cast<size_t>(n));
        return n > 0;
    }
    // Calls f for each line that is whole.
    template <class F>
    void lines(F&& f) {
        for (size_t end; (end = text_.find('\n')) != text_.npos; text_.erase(0, end + 1)) f(text_.substr(0, end));
    }

  private:
    std::string text_;
};

struct Ending {
    int status = 0;           // as waitpid's
    std::string first_words;  // of the message of a crash; empty: there was none
};

// The message of a crash is shown as it comes.
Ending watch(pid_t child, int ledger, int crash, serve::SlotHistory& history) {
    Ending out;
    Text of_ledger, of_crash;
    bool ledger_open = true, crash_open = true;
    while (ledger_open || crash_open) {
        pollfd waits[2] = {{ledger_open ? ledger : -1, POLLIN, 0}, {crash_open ? crash : -1, POLLIN, 0}};
        if (poll(waits, 2, -1) < 0 && errno != EINTR) break;
        if (waits[0].revents) ledger_open = of_ledger.read_from(ledger);
        if (waits[1].revents) crash_open = of_crash.read_from(crash);
        of_ledger.lines([&](const std::string& line) { history.read(line); });
        of_crash.lines([&](const std::string& line) {
            if (out.first_words.empty()) out.first_words = line;
            std::cerr << line << std::endl;
        });
    }
    while (waitpid(child, &out.status, 0) < 0 && errno == EINTR) {
    }
    return out;
}

Failure ended_by_signal() { return fail(StatusCode::kCancelled, "ended by a signal"); }

// In the child, which ends with the exit code.
int be_the_server(const Supervised& given, int crash, const std::function<int(const Supervised&)>& serve) {
    setpgid(0, 0); // Ctrl-C comes from the parent, once
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    report_crashes_to(crash);
    return serve(given);
}

}  // namespace

Result<int> supervise(const std::string& host, uint16_t port, const std::function<int(const Supervised&)>& serve) {
    PB_TRY(const Descriptor listener, listen_on(host, port));
    serve::SlotHistory history;
    pass_on_signals();
    for (uint32_t restarts = 0;; ++restarts) {
        PB_TRY(Pipe ledger, Pipe::open());
        PB_TRY(Pipe crash, Pipe::open());
        history.begin_process();
        std::cerr << std::flush;
        const pid_t child = fork_to_be_watched();
        if (child < 0 && was_ended) return ended_by_signal();
        if (child < 0) return fail(system_error("cannot start the server"));
        if (child == 0) {
            const int crash_fd = crash.theirs.release();
            auto writer = std::make_shared<serve::SlotLedger>(ledger.theirs.release(), history.culprits());
            const Supervised given{fcntl(listener.get(), F_DUPFD_CLOEXEC, 0), std::move(writer), history.choices(),
                                   restarts};
            return be_the_server(given, crash_fd, serve);
        }
        ledger.theirs.reset();
        crash.theirs.reset();
        const Ending ending = watch(child, ledger.ours.get(), crash.ours.get(), history);
        child_of_signals = 0;
        const auto culprit = history.blame(ending.first_words);
        if (!culprit) {
            if (WIFEXITED(ending.status)) return WEXITSTATUS(ending.status);
            const int signal = WTERMSIG(ending.status);
            if (was_ended && (signal == SIGINT || signal == SIGTERM)) return ended_by_signal();
            return fail("the server was ended by signal " + std::to_string(signal) +
                        " outside of any call of a plugin that can be swapped");
        }
        const std::string who = culprit->kind + " '" + culprit->name + "' (" + culprit->sha256 + ")";
        if (culprit->predecessor.empty())
            return fail(who + " has ended the server, and no other was in its slot before");
        if (was_ended || history.is_draining()) return fail(who + " has ended the server while it was shutting down");
        std::cerr << "supervisor: " << who << " has ended the server, and is refused from now on; it starts again with "
                  << culprit->kind << " '" << culprit->predecessor << "'" << std::endl;
    }
}

}  // namespace patchbay::cli
