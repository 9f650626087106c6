#include "shortcut.hpp"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include "carry_out.hpp"

// Called by a Shortcut. Keeps all registers and flags, and calls amx_by_hand_meet(Registers, return address). The state
// is that of CPUID's leaf 13 for x87, SSE, AVX and AVX-512: 2,688 bytes, of which 64 from byte 512 on must begin as 0.
asm(R"(
    .pushsection .text
    .hidden amx_by_hand_enter
    .global amx_by_hand_enter
    .type amx_by_hand_enter, @function
amx_by_hand_enter:
    pushfq
    push %r15
    push %r14
    push %r13
    push %r12
    push %r11
    push %r10
    push %r9
    push %r8
    push %rdi
    push %rsi
    push %rbp
    push %rsp
    push %rbx
    push %rdx
    push %rcx
    push %rax
    lea 272(%rsp), %rax
    mov %rax, 32(%rsp)
    mov %rsp, %rdi
    mov 136(%rsp), %rsi
    mov %rsp, %rbp
    sub $2688, %rsp
    and $-64, %rsp
    xor %eax, %eax
    mov %rax, 512(%rsp)
    mov %rax, 520(%rsp)
    mov %rax, 528(%rsp)
    mov %rax, 536(%rsp)
    mov %rax, 544(%rsp)
    mov %rax, 552(%rsp)
    mov %rax, 560(%rsp)
    mov %rax, 568(%rsp)
    mov $0xe7, %eax
    xor %edx, %edx
    xsave64 (%rsp)
    cld
    call amx_by_hand_meet
    mov $0xe7, %eax
    xor %edx, %edx
    xrstor64 (%rsp)
    mov %rbp, %rsp
    pop %rax
    pop %rcx
    pop %rdx
    pop %rbx
    lea 8(%rsp), %rsp
    pop %rbp
    pop %rsi
    pop %rdi
    pop %r8
    pop %r9
    pop %r10
    pop %r11
    pop %r12
    pop %r13
    pop %r14
    pop %r15
    popfq
    ret
    .size amx_by_hand_enter, . - amx_by_hand_enter
    .popsection
)");

extern "C" {
void amx_by_hand_enter();
[[gnu::visibility("hidden")]] void amx_by_hand_meet(const uint64_t* registers, const uint8_t* after);
}

namespace patchbay::amx_by_hand {
namespace {

constexpr uint8_t kBreakpoint = 0xcc, kJump = 0xe9;
constexpr int kJumpBytes = 5; // no tile instruction has fewer
constexpr size_t kPage = 4096, kArena = 16 * kPage;

struct Shortcut {
    static constexpr int kAfterCall = 11;

    uint8_t code[24] = {0x48, 0x8d, 0x64, 0x24, 0x80,       // lea -128(%rsp), %rsp: leaves the red zone alone
                        0xff, 0x15, 13, 0, 0, 0,            // call *enter
                        0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0, // lea 128(%rsp), %rsp
                        kJump};                             // back
    void (*enter)() = amx_by_hand_enter;
    Instruction instruction;
    const uint8_t* at;
};
static_assert(sizeof(Shortcut::code) == 24 && offsetof(Shortcut, enter) == 24);

bool ready = false;
Shortcut *next = nullptr, *end = nullptr;

// From one jump's first byte to where it leads.
int32_t distance(const uint8_t* from, const void* to) {
    return static_cast<int32_t>(static_cast<const uint8_t*>(to) - (from + kJumpBytes));
}

uint64_t apart(const void* a, const void* b) {
    const auto x = reinterpret_cast<uint64_t>(a), y = reinterpret_cast<uint64_t>(b);
    return x < y ? y - x : x - y;
}

bool in_reach(const uint8_t* at) { return next != end && apart(at, next) < 1ull << 30; }

// Some memory near `at`, for many. Gaps are small between things that are larger than a jump is long.
void find_memory(const uint8_t* at) {
    static const uint8_t* in_vain = nullptr;
    if (in_vain && apart(at, in_vain) < 1 << 20) return; // each instruction comes here again
    const uint64_t from = reinterpret_cast<uint64_t>(at) / kArena * kArena;
    for (uint64_t i = 1; i < 4000; ++i)
        for (const uint64_t to : {from + i * kArena, from - i * kArena}) {
            void* const memory = mmap(reinterpret_cast<void*>(to), kArena, PROT_READ | PROT_WRITE | PROT_EXEC,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (memory == MAP_FAILED) continue;
            next = static_cast<Shortcut*>(memory);
            end = next + kArena / sizeof(Shortcut);
            return;
        }
    in_vain = at;
}

// No thread goes on with code that it fetched before.
void tell_threads() { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0u, 0); }

void write_code(uint8_t* at, uint8_t byte) {
    std::atomic_ref<uint8_t>(*at).store(byte);
    tell_threads();
}

}  // namespace

bool prepare_shortcuts() {
    ready = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0u, 0) == 0;
    return ready;
}

void lay_shortcut(uint8_t* at, const Instruction& instruction) {
    if (!ready) return;
    if (!in_reach(at)) find_memory(at);
    if (!in_reach(at)) return;
    uint8_t* const page = at - reinterpret_cast<uint64_t>(at) % kPage;
    const auto bytes = static_cast<size_t>(at + kJumpBytes - page);
    if (mprotect(page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
    Shortcut* const shortcut = new (next++) Shortcut{.instruction = instruction, .at = at};
    uint8_t* const back = shortcut->code + sizeof shortcut->code - kJumpBytes;
    const int32_t there = distance(at, shortcut), here = distance(back, at + instruction.length);
    std::memcpy(back + 1, &here, sizeof here);
    write_code(at, kBreakpoint);
    std::memcpy(at + 1, &there, sizeof there);
    tell_threads();
    write_code(at, kJump);
    mprotect(page, bytes, PROT_READ | PROT_EXEC);
}

bool is_shortcut(const uint8_t* at) { return *at == kJump; }

}  // namespace patchbay::amx_by_hand

void amx_by_hand_meet(const uint64_t* registers, const uint8_t* after) {
    using namespace patchbay::amx_by_hand;
    const auto* const shortcut = reinterpret_cast<const Shortcut*>(after - Shortcut::kAfterCall);
    carry_out(shortcut->instruction, *reinterpret_cast<const Registers*>(registers), shortcut->at);
}
