#include "kernels/cpu_isa.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace patchbay::kernels {
namespace {

constexpr Isa kAll[] = {Isa::Plain, Isa::Avx2, Isa::Avx512, Isa::Amx};

std::optional<Isa> find_isa(std::string_view name) {
    for (const Isa isa : kAll)
        if (name == isa_name(isa)) return isa;
    return std::nullopt;
}

// Tiles of bf16, which the kernel must also grant to this process; it saves 8 KB more of each thread then.
bool has_amx() {
#if defined(__x86_64__) && defined(__linux__)
    constexpr unsigned int kBf16 = 1u << 22, kTile = 1u << 24; // of leaf 7, edx
    unsigned int a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (kBf16 | kTile)) != (kBf16 | kTile)) return false;
    constexpr long kRequestPermission = 0x1023, kTileData = 18; // arch_prctl: ARCH_REQ_XCOMP_PERM
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

#if defined(__x86_64__)
bool has_f16c() { // which clang 14 cannot be asked for
    unsigned int a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

// __builtin_cpu_supports also asks whether the operating system saves the registers.
bool machine_has(Isa isa) {
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    if (isa == Isa::Avx2) return avx2;
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f");
    if (isa == Isa::Avx512) return avx512;
    const bool words = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl");
    if (isa == Isa::Amx) return avx512 && words && __builtin_cpu_supports("avx512bf16") && has_amx();
#endif
    return isa == Isa::Plain;
}

IsaChoice refuse(IsaChoice::Verdict verdict, std::string reason) { return {Isa::Plain, verdict, std::move(reason)}; }

// `where` names who asked: "isa", or the variable.
IsaChoice look_up(std::string_view name, const std::string& where) {
    const std::optional<Isa> isa = find_isa(name);
    if (!isa)
        return refuse(IsaChoice::Verdict::Unknown, where + ": unknown level '" + std::string(name) +
                                                       "', expected plain, avx2, avx512 or amx");
    if (!machine_has(*isa))
        return refuse(IsaChoice::Verdict::Unavailable, where + ": " + isa_name(*isa) +
                                                           " asked for, but this machine (" + cpu_brand() +
                                                           ") has at most " + isa_name(available_isas().back()) +
                                                           ", or its system allows no more");
    return {*isa, IsaChoice::Verdict::Ok, {}};
}

}  // namespace

const char* isa_name(Isa isa) {
    switch (isa) {
        case Isa::Amx: return "amx";
        case Isa::Avx512: return "avx512";
        case Isa::Avx2: return "avx2";
        case Isa::Plain: break;
    }
    return "plain";
}

std::vector<Isa> available_isas() {
    std::vector<Isa> out;
    for (const Isa isa : kAll)
        if (machine_has(isa)) out.push_back(isa);
    return out;
}

std::string cpu_brand() {
#if defined(__x86_64__)
    unsigned int r[12] = {};
    if (static_cast<unsigned int>(__get_cpuid_max(0x80000000u, nullptr)) >= 0x80000004u) {
        for (unsigned int i = 0; i < 3; ++i)
            __get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]);
        char text[sizeof r + 1] = {};
        std::memcpy(text, r, sizeof r);
        const std::string_view brand(text);
        const size_t from = brand.find_first_not_of(' ');
        if (from != std::string_view::npos)
            return std::string(brand.substr(from, brand.find_last_not_of(' ') - from + 1));
    }
#endif
    return "unknown CPU";
}

IsaChoice choose_isa(std::string_view setting, const char* override_value) {
    // amx is asked for only where it may be chosen: Linux gives a process that has it no small signal stacks any more.
    const bool lowered = override_value && *override_value;
    if (setting == "auto" && !lowered) return {available_isas().back(), IsaChoice::Verdict::Ok, {}};
    if (setting == "auto") return look_up(override_value, kIsaVariable);
    const IsaChoice asked = look_up(setting, "isa");
    if (asked.verdict != IsaChoice::Verdict::Ok || !lowered) return asked;
    IsaChoice chosen = look_up(override_value, kIsaVariable);
    if (chosen.verdict == IsaChoice::Verdict::Ok) chosen.isa = std::min(asked.isa, chosen.isa);
    return chosen;
}

}  // namespace patchbay::kernels
