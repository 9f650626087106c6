#include "cli/plugin_check.hpp"

#include <filesystem>
#include <iostream>
#include <vector>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/words.hpp"
#include "cli/report_command.hpp"
#include "host/probe.hpp"
#include "host/schema.hpp"

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
void print_debug_line(const PluginCheck& o, const host::CheckLine& line) {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "patchbay-probe";
    std::cout << "debug:   gdb -ex 'set breakpoint pending on' -ex run --args " << in_shell_quotes(program.string())
              << " --here " << in_shell_quotes(o.library);
    if (!line.component.empty()) { // else the library cannot even be loaded
        std::cout << ' ' << line.check << ' ' << line.component;
        for (const auto& [key, value] : o.settings) std::cout << ' ' << in_shell_quotes(key + "=" + value);
    }
    std::cout << '\n';
}

void print_line(const PluginCheck& o, const host::CheckLine& line) {
    const char* word = line.outcome == host::CheckOutcome::kOk       ? "ok"
                       : line.outcome == host::CheckOutcome::kFailed ? "FAILED"
                                                                     : "skipped";
    std::cout << word << std::string(9 - std::string_view(word).size(), ' ') << line.check
              << (line.component.empty() ? "" : "  " + line.component)
              << (line.reason.empty() ? "" : ": " + printable_message(line.reason)) << '\n';
    if (o.debug == DebugLines::kShown && line.outcome == host::CheckOutcome::kFailed) print_debug_line(o, line);
}

// Keys without a default: where no value could be guessed, none of its kind's checks has run.
std::string required_keys(const host::ComponentManifest& c) {
    std::vector<std::string> keys;
    for (const host::ParamManifest& p : c.params)
        if (!p.default_value) keys.push_back(p.name);
    return joined(keys);
}

void print_skipped(const PluginCheck& o, const host::ProbeReport& report) {
    for (const host::CheckLine& line : report.lines)
        for (const host::ComponentManifest& c : report.manifest->components)
            if (line.check == "component.create" && line.outcome == host::CheckOutcome::kSkipped &&
                c.unavailable.empty() && line.component == c.kind + "/" + c.name)
                std::cout << "checks skipped: " << line.component << " needs settings for " << required_keys(c)
                          << " (patchbay plugin test " << in_shell_quotes(o.library) << " KEY=VALUE …)\n";
}

Result<> check_with_settings(const PluginCheck& o, const host::Manifest& manifest) {
    std::string why, with;
    bool ran = false;
    for (const auto& [key, value] : o.settings) with += (with.empty() ? "" : " ") + key + "=" + value;
    for (const host::ComponentManifest& c : manifest.components) {
        if (const auto faults = host::check_settings(c, o.settings); !faults.empty()) {
            if (why.empty()) why = faults.front().text;
            continue;
        }
        ran = true;
        const std::string who = c.kind + "/" + c.name + " with " + with;
        const host::ProbedComponent only{c.kind, c.name, o.settings, manifest.sha256};
        PB_TRY(const host::ProbeReport report, host::probe(o.library, {{}, o.timeout_s, only}));
        for (const host::CheckLine& line : report.lines)
            if (!line.component.empty() || line.outcome == host::CheckOutcome::kFailed) print_line(o, line);
        if (report.verdict == host::Verdict::kRefused)
            return invalid(o.library + ": " + who + ": refused by " + report.check + ": " + report.reason);
        const bool passed = report.verdict == host::Verdict::kOk;
        std::cout << printable_message(who)
                  << (passed ? ": ok" : ": not available on this machine: " + printable_message(report.reason)) << '\n';
    }
    return ran ? Result<>() : invalid(o.library + ": " + why);
}

}  // namespace

Result<> check_plugin(const PluginCheck& o) {
    auto probed = host::probe_and_record(o.library, {{}, o.timeout_s});
    if (!probed) return prefixed(o.library, probed.failure());
    const host::ProbeReport report = *std::move(probed);
    for (const host::CheckLine& line : report.lines) print_line(o, line);
    if (report.manifest)
        for (const host::ComponentManifest& c : report.manifest->components)
            std::cout << c.kind << '/' << c.name << "  " << found_in(c) << '\n';
    if (report.verdict == host::Verdict::kRefused)
        return invalid(o.library + ": refused by " + report.check + ": " + report.reason);
    std::cout << o.library
              << (report.verdict == host::Verdict::kOk ? ": ok"
                                                       : ": sound, but not available on this machine: " +
                                                             printable_message(report.reason))
              << "; manifest " << host::manifest_path(o.library).string() << '\n';
    if (!o.settings.empty()) return check_with_settings(o, *report.manifest);
    print_skipped(o, report);
    return {};
}

}  // namespace patchbay::cli
