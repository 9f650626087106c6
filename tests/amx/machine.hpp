// Whether this machine needs emulated tiles, and supports the emulation.
#pragma once
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace patchbay::amx_by_hand {

constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kAmxInt8 = 1u << 25; // of CPUID's leaf 7, edx

// arch_prctl: its CPUID raises SIGSEGV in this thread and those that it starts, until it is allowed again.
constexpr long kSetCpuid = 0x1012;
inline bool forbid_cpuid() { return ::syscall(SYS_arch_prctl, kSetCpuid, 0L) == 0; }
inline void allow_cpuid() { ::syscall(SYS_arch_prctl, kSetCpuid, 1L); }

// Why tiles cannot be emulated or need not be, as a sentence; nullptr: they can.
inline const char* why_not_by_hand() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kAmxTile))
        return "this machine has AMX: the ordinary tests run at that level";
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return "this machine lacks the vector instructions of the level amx";
    if (!forbid_cpuid()) return "this machine or its hypervisor does not let a program answer CPUID";
    allow_cpuid();
    return nullptr;
}

}  // namespace patchbay::amx_by_hand
