// Preloaded into a program, lets it run at the CPU device's level amx on a machine that has AVX-512 with bf16 but no
// AMX: CPUID says that there is AMX, the kernel's permission is given, and tile instructions, which raise SIGILL there,
// are carried out in vectors. For tests alone. Where why_not_by_hand() has a reason it does nothing.
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <iterator>

#include "carry_out.hpp"
#include "machine.hpp"
#include "shortcut.hpp"

// The implementation of libc's functions of these names, which programs call here instead.
extern "C" int __sigaction(int signal, const struct sigaction* now, struct sigaction* before) noexcept;

namespace patchbay::amx_by_hand {
namespace {

bool at_work = false;

constexpr int kSignals[] = {SIGILL, SIGTRAP, SIGSEGV};
struct sigaction actions_of_program[std::size(kSignals)] = {};

struct sigaction* action_of_program(int signal) {
    for (size_t i = 0; i < std::size(kSignals); ++i)
        if (at_work && kSignals[i] == signal) return &actions_of_program[i];
    return nullptr;
}

bool was_sent(const siginfo_t* info) { return info->si_code <= 0; } // by a process: no instruction raised it

// A signal that means the program itself.
void pass_on(int signal, siginfo_t* info, void* context) {
    const struct sigaction& action = *action_of_program(signal);
    if (action.sa_flags & SA_SIGINFO) return action.sa_sigaction(signal, info, context);
    if (action.sa_handler == SIG_IGN && was_sent(info)) return;
    if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) return action.sa_handler(signal);
    struct sigaction end = {};
    end.sa_handler = SIG_DFL;
    __sigaction(signal, &end, nullptr);
    if (was_sent(info) || signal == SIGTRAP) raise(signal); // nothing will raise it again
}

// Code is read and changed by one thread at a time.
class Code {
  public:
    Code() {
        while (taken_.test_and_set(std::memory_order_acquire)) {}
    }
    ~Code() { taken_.clear(std::memory_order_release); }
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;

  private:
    static inline std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

gregset_t& registers_of(void* context) { return static_cast<ucontext_t*>(context)->uc_mcontext.gregs; }

void on_illegal(int signal, siginfo_t* info, void* context) {
    if (was_sent(info)) return pass_on(signal, info, context);
    constexpr int kPlaces[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                               REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    gregset_t& all = registers_of(context);
    auto* const at = reinterpret_cast<uint8_t*>(all[REG_RIP]);
    Instruction instruction;
    {
        const Code code;
        if (is_shortcut(at)) return; // by now: on to it
        instruction = decode(at);
        const int error = errno;
        if (instruction.op != Op::kNone) lay_shortcut(at, instruction);
        errno = error;
    }
    if (instruction.op == Op::kNone) return pass_on(signal, info, context);
    Registers registers;
    for (size_t i = 0; i < std::size(kPlaces); ++i) registers[i] = static_cast<uint64_t>(all[kPlaces[i]]);
    carry_out(instruction, registers, at);
    all[REG_RIP] += instruction.length;
}

// Another thread was about to make a shortcut of this place.
void on_breakpoint(int signal, siginfo_t* info, void* context) {
    if (was_sent(info)) return pass_on(signal, info, context);
    greg_t& place = registers_of(context)[REG_RIP];
    const auto* const at = reinterpret_cast<const uint8_t*>(place) - 1;
    bool met;
    {
        const Code code;
        met = is_shortcut(at);
    }
    if (met) place -= 1;
    else pass_on(signal, info, context);
}

void on_violation(int signal, siginfo_t* info, void* context) {
    constexpr greg_t kGeneralProtection = 13;
    gregset_t& registers = registers_of(context);
    const auto* at = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
    if (info->si_code != SI_KERNEL || registers[REG_TRAPNO] != kGeneralProtection || at[0] != 0x0f || at[1] != 0xa2)
        return pass_on(signal, info, context);
    const auto leaf = static_cast<unsigned>(registers[REG_RAX]), part = static_cast<unsigned>(registers[REG_RCX]);
    unsigned a = 0, b = 0, c = 0, d = 0;
    allow_cpuid();
    __cpuid_count(leaf, part, a, b, c, d);
    forbid_cpuid();
    if (leaf == 7 && part == 0) d |= kAmxBf16 | kAmxTile | kAmxInt8;
    registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

void take(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER; // a violation in between is the program's own
    __sigaction(signal, &action, action_of_program(signal));
}

[[gnu::constructor]] void begin() {
    if (why_not_by_hand()) return;
    at_work = true;
    prepare_shortcuts();
    take(SIGILL, on_illegal);
    take(SIGTRAP, on_breakpoint);
    take(SIGSEGV, on_violation);
    forbid_cpuid();
}

long kernel(long number, const long (&a)[6]) {
    long result;
    register long fourth asm("r10") = a[3];
    register long fifth asm("r8") = a[4];
    register long sixth asm("r9") = a[5];
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(fourth), "r"(fifth), "r"(sixth)
                 : "rcx", "r11", "memory");
    if (result >= 0 || result < -4095) return result;
    errno = static_cast<int>(-result);
    return -1;
}

}  // namespace
}  // namespace patchbay::amx_by_hand

namespace by_hand = patchbay::amx_by_hand;

// The program's calls: of libc's functions, but for what is known better here.
extern "C" {

// All six arguments are read, though most callers give fewer: the rest may be uninitialised.
[[gnu::visibility("default"), gnu::no_sanitize("address")]] long syscall(long number, ...) noexcept {
    long arguments[6];
    std::va_list list;
    va_start(list, number);
    for (long& argument : arguments) argument = va_arg(list, long);
    va_end(list);
    constexpr long kRequestPermission = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM
    if (by_hand::at_work && number == SYS_arch_prctl && arguments[0] == kRequestPermission &&
        arguments[1] == kTileData) {
        by_hand::permit();
        return 0;
    }
    return by_hand::kernel(number, arguments);
}

[[gnu::visibility("default")]] int sigaction(int signal, const struct sigaction* now,
                                             struct sigaction* before) noexcept {
    struct sigaction* const mine = by_hand::action_of_program(signal);
    if (!mine) return __sigaction(signal, now, before);
    const struct sigaction next = now ? *now : *mine; // both may be one
    if (before) *before = *mine;
    *mine = next;
    return 0;
}

[[gnu::visibility("default")]] sighandler_t signal(int number, sighandler_t handler) noexcept {
    struct sigaction now = {}, before = {};
    now.sa_handler = handler;
    now.sa_flags = SA_RESTART;
    return sigaction(number, &now, &before) == 0 ? before.sa_handler : SIG_ERR;
}

} // extern "C"
