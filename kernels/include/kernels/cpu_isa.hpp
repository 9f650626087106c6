// Which instructions the CPU kernels use. Levels differ in low bits of results; within one, results do not depend on
// the batch. Used by the CPU plugins when they are created, and by tests that run each level.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::kernels {

enum class Isa { Plain, Avx2, Avx512, Amx }; // in ascending order

const char* isa_name(Isa);           // "plain", "avx2", "avx512", "amx": as settings spell it
std::vector<Isa> available_isas();   // of this machine, ascending; never empty
std::string cpu_brand();             // "Intel(R) Xeon(R) Processor"; "unknown CPU" where the machine does not say

inline constexpr const char* kIsaVariable = "PATCHBAY_CPU_ISA"; // environment: may only lower the level

struct IsaChoice {
    enum class Verdict { Ok, Unknown /* no such name */, Unavailable /* the machine lacks it */ };
    Isa isa = Isa::Plain;
    Verdict verdict = Verdict::Ok;
    std::string reason; // why not; empty when Ok
};

// `setting`: "auto" or a level's name. `override_value`: of kIsaVariable; nullptr or empty when not set.
IsaChoice choose_isa(std::string_view setting, const char* override_value);

}  // namespace patchbay::kernels
