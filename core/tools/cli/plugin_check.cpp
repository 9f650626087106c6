#include "cli/plugin_check.hpp"

#include <filesystem>
#include <iostream>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/words.hpp"
#include "cli/report_command.hpp"
#include "host/probe.hpp"

namespace patchbay::cli {

std::string found_in(const host::ComponentManifest& c) {
    std::vector<std::string> extensions;
    for (const host::ExtensionManifest& e : c.extensions)
        extensions.push_back(e.id + " revision " + std::to_string(e.revision));
    return printable("hooks: " + joined(c.hooks) +
                         "; extensions: " + (extensions.empty() ? "none" : joined(extensions)), 2000);
}

namespace {

// The command that runs one check in a debugger's own process.
void print_debug_line(const std::string& library, const host::CheckLine& line) {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "patchbay-probe";
    const bool of_kind = !line.component.empty(); // else the library cannot even be loaded
    std::cout << "debug:   gdb -ex 'set breakpoint pending on' -ex run --args " << in_shell_quotes(program.string())
              << " --here " << in_shell_quotes(library) << (of_kind ? " " + line.check + " " + line.component : "")
              << '\n';
}

}  // namespace

Result<> check_plugin(const std::string& library, std::optional<uint32_t> timeout_s, DebugLines debug) {
    auto probed = host::probe_and_record(library, {{}, timeout_s});
    if (!probed) return prefixed(library, probed.failure());
    const host::ProbeReport report = *std::move(probed);
    for (const host::CheckLine& line : report.lines) {
        const char* word = line.outcome == host::CheckOutcome::kOk       ? "ok"
                           : line.outcome == host::CheckOutcome::kFailed ? "FAILED"
                                                                         : "skipped";
        std::cout << word << std::string(9 - std::string_view(word).size(), ' ') << line.check
                  << (line.component.empty() ? "" : "  " + line.component)
                  << (line.reason.empty() ? "" : ": " + printable_message(line.reason)) << '\n';
        if (debug == DebugLines::kShown && line.outcome == host::CheckOutcome::kFailed) print_debug_line(library, line);
    }
    if (report.manifest)
        for (const host::ComponentManifest& c : report.manifest->components)
            std::cout << c.kind << '/' << c.name << "  " << found_in(c) << '\n';
    if (report.verdict == host::Verdict::kRefused)
        return invalid(library + ": refused by " + report.check + ": " + report.reason);
    std::cout << library
              << (report.verdict == host::Verdict::kOk ? ": ok"
                                                       : ": sound, but not available on this machine: " +
                                                             printable_message(report.reason))
              << "; manifest " << host::manifest_path(library).string() << '\n';
    return {};
}

}  // namespace patchbay::cli
