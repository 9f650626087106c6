// patchbay/testing/checks.hpp - the checks of a plugin's kind, by patchbay-probe in a child process, one result each.
#pragma once
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace patchbay::testing {

struct CheckResult {
    enum class Outcome { kOk, kFailed, kSkipped };
    Outcome outcome;
    std::string check, component, reason; // "scheduler.budget", "scheduler/mine"; why it failed or was skipped
    bool failed() const { return outcome == Outcome::kFailed; }
    friend std::ostream& operator<<(std::ostream& out, const CheckResult& r) {
        return out << r.check << "  " << r.component << ": " << r.reason;
    }
};

// The program: $PATCHBAY_PROBE, else the one that CMake found, else patchbay-probe on PATH.
inline std::string probe_program() {
    if (const char* const given = std::getenv("PATCHBAY_PROBE")) return given;
#ifdef PATCHBAY_TESTING_PROBE
    return PATCHBAY_TESTING_PROBE;
#else
    return "patchbay-probe";
#endif
}

// Writes the manifest beside the library, as `patchbay plugin test` does. Throws std::runtime_error where no check ran.
inline std::vector<CheckResult> run_checks(const std::string& library) {
    const auto quoted = [](const std::string& text) {
        std::string out = "'";
        for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
        return out + "'";
    };
    const std::string command = quoted(probe_program()) + " --lines " + quoted(library) + " 2>/dev/null";
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("cannot start " + probe_program());
    std::string text;
    char part[4096];
    for (size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
    pclose(pipe);
    std::vector<CheckResult> out;
    for (size_t from = 0; from < text.size();) { // "ok", check, component, reason: between tabs
        const size_t end = std::min(text.find('\n', from), text.size());
        std::string words[4];
        size_t at = from;
        for (std::string& word : words) {
            const size_t stop = std::min(text.find('\t', at), end);
            word = at < end ? text.substr(at, stop - at) : "";
            at = stop + 1;
        }
        using Outcome = CheckResult::Outcome;
        out.push_back({words[0] == "ok" ? Outcome::kOk : words[0] == "FAILED" ? Outcome::kFailed : Outcome::kSkipped,
                       words[1], words[2], words[3]});
        from = end + 1;
    }
    if (out.empty()) throw std::runtime_error(probe_program() + " ran no check of " + library);
    return out;
}

}  // namespace patchbay::testing
