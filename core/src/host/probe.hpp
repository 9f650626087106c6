// Runs unknown code first in a child: `patchbay-probe` loads a library, puts every component through its kind's checks
// and says what it found. Used by add_plugin() after linking, `patchbay plugin test`, and the tests.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "host/manifest.hpp"
#include "host/schema.hpp"

namespace patchbay::host {

enum class CheckOutcome { kOk, kFailed, kSkipped };

struct CheckLine {
    std::string component; // "scheduler/fcfs"; empty: of the library
    std::string check;     // "scheduler.budget"
    CheckOutcome outcome = CheckOutcome::kOk;
    std::string reason;    // of a failure or a skip
};

enum class Verdict { kOk, kRefused, kUnavailable /* fine, but the machine lacks what it needs */ };

struct ProbeReport {
    Verdict verdict = Verdict::kRefused;
    std::string check, reason; // of a refusal: the first failed check; of kUnavailable: the reason alone
    std::vector<CheckLine> lines;
    std::optional<Manifest> manifest; // unless refused
};

struct ProbedComponent { // one of a library's, with the settings that it is to run with
    std::string kind, name;
    Settings settings;
    std::string sha256{}; // of the library's bytes, else it is refused before it is mapped; empty: any
};

struct ProbeLimits {
    uint32_t timeout_s = 60;    // of wall time, after which the child is killed
    uint64_t memory_mib = 4096; // of its data; 0: no limit
};
// The defaults, or what PATCHBAY_PROBE_TIMEOUT_S and PATCHBAY_PROBE_MEMORY_MIB say: a large GPU's driver may want more.
Result<ProbeLimits> probe_limits();

struct ProbeOptions {
    std::filesystem::path program; // empty: patchbay-probe beside this program
    std::optional<uint32_t> timeout_s{}; // none: that of probe_limits()
    std::optional<ProbedComponent> only{}; // none: all, with their defaults
    int stop = -1; // a descriptor: once it can be read, the probe is broken off and fails, kCancelled; -1: none
};

// Fails only where no probe could be run to its end; a bad library is a report.
Result<ProbeReport> probe(const std::filesystem::path& library, const ProbeOptions&);
// The same, and <plugin>.plugin.json beside the library: written unless it is refused, else removed, and the refusal
// written to <plugin>.refused.txt. A failure leaves both as they are; that the library changed meanwhile is one.
Result<ProbeReport> probe_and_record(const std::filesystem::path& library, const ProbeOptions&);
// What is written there, as one line; empty: nothing is.
std::string recorded_refusal(const std::filesystem::path& library);

}  // namespace patchbay::host
