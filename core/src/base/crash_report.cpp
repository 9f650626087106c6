#include "base/crash_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/plugin_call.hpp"

namespace patchbay {
namespace {

struct Fatal {
    int signal;
    std::string_view name;
};
constexpr Fatal kFatal[] = {{SIGSEGV, "SIGSEGV (invalid memory access)"},
                            {SIGBUS, "SIGBUS (invalid memory access)"},
                            {SIGFPE, "SIGFPE (arithmetic fault)"},
                            {SIGILL, "SIGILL (illegal instruction)"},
                            {SIGABRT, "SIGABRT (abort)"}};
constexpr size_t kSignalStackBytes = 64 << 10; // a handler's frame holds all registers, those of tiles too

struct sigaction before[std::size(kFatal)]; // what signals did before report_crashes()
std::atomic<bool> reporting{false}, exit_expected{false};
std::atomic<int> report_to{STDERR_FILENO};
std::atomic<void (*)()> then_call{nullptr};

struct Note { // read by a signal's handler, so never the one that is being written
    char text[400];
    size_t size = 0;
};
Note notes[2];
std::atomic<size_t> latest_note{0};

// A line of text without memory from the heap: a signal may have come while that was being changed.
class Line {
  public:
    Line& operator<<(std::string_view text) {
        const size_t n = std::min(text.size(), sizeof text_ - size_);
        std::memcpy(text_ + size_, text.data(), n);
        size_ += n;
        return *this;
    }
    Line& operator<<(uint64_t number) {
        char digits[20];
        size_t at = sizeof digits;
        do digits[--at] = static_cast<char>('0' + number % 10);
        while (number /= 10);
        return *this << std::string_view(digits + at, sizeof digits - at);
    }
    std::string_view text() const { return {text_, size_}; }
    void write() const {
        for (size_t done = 0; done < size_;) {
            const ssize_t n = ::write(report_to, text_ + done, size_ - done);
            if (n <= 0) return;
            done += static_cast<size_t>(n);
        }
    }

  private:
    char text_[512];
    size_t size_ = 0;
};

// "patchbay: scheduler 'fcfs': plan: called exit(0) in step 12"
void report(std::string_view what, const CallRecord& call) {
    Line line;
    line << "patchbay: ";
    if (call.component) line << call.component << ": " << call.call << ": ";
    line << what;
    if (!call.component) line << " outside of any plugin's call";
    if (call.step > 0) line << (call.component ? " in step " : ", after step ") << call.step;
    (line << "\n").write();
    if (const Note& note = notes[latest_note]; note.size > 0) {
        Line second;
        (second << "patchbay: " << std::string_view(note.text, note.size) << "\n").write();
    }
    if (const auto f = then_call.load()) f();
}

void on_signal(int signal, siginfo_t* info, void*) {
    const int error = errno;
    for (size_t i = 0; i < std::size(kFatal); ++i) {
        if (kFatal[i].signal != signal) continue;
        report(kFatal[i].name, current_call());
        sigaction(signal, &before[i], nullptr);
    }
    // A fault comes again when this returns, at its place; what was sent does not.
    if (info->si_code <= 0) raise(signal);
    errno = error;
}

void on_exit_call(int status, void*) {
    if (exit_expected) return;
    Line what;
    what << "called exit(";
    if (status < 0) what << "-";
    what << static_cast<uint64_t>(std::abs(int64_t{status})) << ")";
    report(what.text(), current_call());
    _exit(EXIT_FAILURE);
}

}  // namespace

void report_exit_first() {
    if (reporting) on_exit(on_exit_call, nullptr); // what is registered last runs first
}

void report_crashes_to(int fd) { report_to = fd; }

void at_crash(void (*f)()) { then_call = f; }

void note_for_crashes(std::string_view text) {
    const size_t next = 1 - latest_note;
    notes[next].size = std::min(text.size(), sizeof notes[next].text);
    std::memcpy(notes[next].text, text.data(), notes[next].size);
    latest_note = next;
}

void expect_exit() { exit_expected = true; }

void report_crashes() {
    if (reporting.exchange(true)) return;
    report_exit_first();
    at_quick_exit([] { on_exit_call(0, nullptr); });
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(kFatal); ++i) sigaction(kFatal[i].signal, &action, &before[i]);
}

SignalStack::SignalStack() : memory_(new char[kSignalStackBytes]) {
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = kSignalStackBytes;
    sigaltstack(&stack, nullptr);
}

SignalStack::~SignalStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
}

}  // namespace patchbay
