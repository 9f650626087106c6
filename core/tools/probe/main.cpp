// patchbay-probe FILE.so: what a plugin goes through before anybody relies on it. The parent (this program as called)
// starts itself again as the child in which the library runs, reads its verdict and writes the manifest.
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers.hpp"
#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "conformance/run.hpp"
#include "host/probe.hpp"
#include "host/probe_wire.hpp"
#include "probe/child.hpp"
#include "probe/supervisor.hpp"

namespace {

using namespace patchbay;

constexpr const char* kUsage =
    "usage: patchbay-probe [--timeout SECONDS] [--keep-refused] [--lines] FILE.so\n"
    "       patchbay-probe --here FILE.so [CHECK [KIND/NAME [KEY=VALUE …]]]\n"
    "Runs a plugin's checks in a child process and, unless one fails, writes FILE.plugin.json beside it; else the\n"
    "reason to FILE.refused.txt. PATCHBAY_PROBE_TIMEOUT_S (60) and PATCHBAY_PROBE_MEMORY_MIB (4096; 0: no limit)\n"
    "bound the child. --keep-refused: exits with 0 then, so that a build goes on without the plugin.\n"
    "--lines: prints each check as outcome, name, component and reason, between tabs, for programs.\n"
    "--here: runs the checks, or one of them, in this process, for a debugger: no manifest, no limits.\n"
    "PATCHBAY_LOG=debug, info, warn or err shows what the plugin logs; with --here warn is the default.\n"
    "Example: patchbay-probe build/release/lib/patchbay/plugins/scheduler-fcfs.so\n"
    "Exit codes: 0 the checks pass, or the machine lacks what the plugin needs; 1 refused; 2 bad usage.\n";

struct Arguments {
    std::optional<uint32_t> timeout_s;
    bool keep_refused = false, lines = false;
    std::string file;
};

std::string between_tabs(const std::string& text) { // what is no character of a line becomes a space
    std::string out = printable_message(text);
    for (char& c : out)
        if (c == '\t' || c == '\n') c = ' ';
    return out;
}

void print_lines(const host::ProbeReport& report) {
    for (const host::CheckLine& line : report.lines) {
        const char* const word = line.outcome == host::CheckOutcome::kOk       ? "ok"
                                 : line.outcome == host::CheckOutcome::kFailed ? "FAILED"
                                                                               : "skipped";
        std::printf("%s\t%s\t%s\t%s\n", word, line.check.c_str(), line.component.c_str(),
                    between_tabs(line.reason).c_str());
    }
}

int run_parent(const Arguments& a) {
    const std::string file = printable(a.file, 1000);
    const auto report = host::probe_and_record(a.file, {"/proc/self/exe", a.timeout_s});
    if (!report) {
        std::fprintf(stderr, "%s: %s\n", file.c_str(), printable_message(report.error()).c_str());
        return 1;
    }
    if (a.lines) print_lines(*report);
    for (const host::CheckLine& line : report->lines)
        if (line.outcome == host::CheckOutcome::kFailed)
            std::fprintf(stderr, "%s: refused by %s: %s%s%s\n", file.c_str(), line.check.c_str(),
                         line.component.c_str(), line.component.empty() ? "" : ": ",
                         printable_message(line.reason).c_str());
    if (report->verdict == host::Verdict::kUnavailable)
        std::printf("%s: not available on this machine: %s\n", file.c_str(),
                    printable_message(report->reason).c_str());
    if (report->verdict != host::Verdict::kRefused) return 0;
    if (!a.keep_refused) return 1;
    std::printf("warning: %s: refused, as said above, and not usable; the build goes on without it "
                "(`patchbay plugin test %s` tries it again)\n",
                file.c_str(), file.c_str());
    return 0;
}

// None: bad usage.
std::optional<Arguments> arguments_of(const std::vector<std::string>& words) {
    Arguments out;
    for (size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "--keep-refused") {
            out.keep_refused = true;
        } else if (words[i] == "--lines") {
            out.lines = true;
        } else if (words[i] == "--timeout" && i + 1 < words.size() && parse_number<uint32_t>(words[i + 1])) {
            out.timeout_s = parse_number<uint32_t>(words[++i]);
        } else if (words[i].starts_with("-") || !out.file.empty()) {
            return std::nullopt;
        } else {
            out.file = words[i];
        }
    }
    if (out.file.empty()) return std::nullopt;
    return out;
}

// "scheduler/sjf@" "ageing=2" …: one component, and its settings. After @: its library's digest.
std::optional<host::ProbedComponent> chosen(const std::vector<std::string>& words) {
    if (words.empty()) return std::nullopt;
    const size_t slash = words[0].find('/'), at = std::min(words[0].find('@'), words[0].size());
    if (slash == std::string::npos || at < slash) return std::nullopt;
    host::ProbedComponent out{words[0].substr(0, slash), words[0].substr(slash + 1, at - slash - 1), {},
                              at < words[0].size() ? words[0].substr(at + 1) : ""};
    for (size_t i = 1; i < words.size(); ++i) {
        const size_t equals = words[i].find('=');
        out.settings[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
    return out;
}

int bad_usage(const std::string& why = {}) {
    std::fflush(stdout); // what ran comes before
    if (!why.empty()) std::fprintf(stderr, "patchbay-probe: %s\n", printable_message(why).c_str());
    std::fputs(kUsage, stderr);
    return 2;
}

// For a debugger, without a child: --here FILE.so [CHECK [KIND/NAME [KEY=VALUE …]]].
int run_here(const std::vector<std::string>& words) {
    if (words.empty()) return bad_usage();
    const std::string wanted = words.size() > 1 ? words[1] : "";
    const std::vector<std::string> names = conformance::check_names();
    if (!wanted.empty() && std::ranges::find(names, wanted) == names.end())
        return bad_usage("there is no check '" + wanted + "'" + did_you_mean(wanted, names));
    const auto only = chosen({words.begin() + std::min<ptrdiff_t>(2, std::ssize(words)), words.end()});
    if (words.size() > 2 && !only)
        return bad_usage("got the component '" + words[2] + "', expected KIND/NAME, as in scheduler/fcfs");
    for (size_t i = 3; i < words.size(); ++i)
        if (words[i].find('=') == std::string::npos)
            return bad_usage("got '" + words[i] + "', expected KEY=VALUE");
    bool failed = false, ran = wanted.empty();
    std::string under_way;
    const conformance::Listener listener{
        [&](const std::string& component, const std::string& check) {
            under_way = check + "  " + component;
            ran |= check == wanted;
        },
        [&](const conformance::Outcome& o) {
            using What = conformance::Outcome::What;
            failed |= o.what == What::kFailed;
            ran |= o.what == What::kSkipped; // its component cannot be made here, as the line says
            if (o.what != What::kOk || words.size() > 1)
                std::printf("%s  %s%s%s\n", o.what == What::kOk ? "ok" : o.what == What::kFailed ? "FAILED" : "skipped",
                            under_way.c_str(), o.reason.empty() ? "" : ": ", printable_message(o.reason).c_str());
        }};
    conformance::run_all(words[0], only, listener, wanted);
    if (failed) return 1;
    return ran ? 0 : bad_usage("nothing in " + words[0] + " is of the kind that '" + wanted + "' checks");
}

int run_supervised(int verdict, uint32_t timeout_s, const std::string& library,
                   const std::optional<host::ProbedComponent>& only) {
    const char* const folder = std::getenv("PATCHBAY_CACHE"); // of this probe: its caller made it
    const auto limits = host::probe_limits(); // the caller has read them, too
    const bool limited = limits && !probe::kSanitized; // shadow memory is not the plugin's
    const auto code = probe::supervise({verdict, host::kEndingFd, timeout_s, limited ? limits->memory_mib << 20 : 0,
                                        folder ? folder : ""});
    return code ? *code : probe::run_child(verdict, timeout_s, library, only);
}

// What a plugin logs is not a verdict: it goes to standard error, at the level that is asked for.
void log_at(const char* level) {
    if (!level) return spdlog::set_default_logger(spdlog::null_logger_st("plugins"));
    auto logger = spdlog::stderr_logger_mt("plugins");
    logger->set_pattern("%l: %v");
    logger->set_level(spdlog::level::from_str(level)); // off of what it does not know
    spdlog::set_default_logger(std::move(logger));
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGXFSZ, SIG_IGN); // a manifest beyond the limit of a file's size is a failed write
    const char* const level = std::getenv("PATCHBAY_LOG");
    const bool here = argc > 1 && std::strcmp(argv[1], "--here") == 0;
    log_at(here && !level ? "warn" : level);
    if (argc >= 5 && std::strcmp(argv[1], "--child") == 0) {
        const auto fd = parse_number<uint32_t>(argv[2]), timeout_s = parse_number<uint32_t>(argv[3]);
        if (fd && timeout_s)
            return run_supervised(static_cast<int>(*fd), *timeout_s, argv[4], chosen({argv + 5, argv + argc}));
    }
    if (argc > 1 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
        std::fputs(kUsage, stdout);
        return 0;
    }
    if (here) return run_here({argv + 2, argv + argc});
    const auto arguments = arguments_of({argv + 1, argv + argc});
    return arguments ? run_parent(*arguments) : bad_usage();
}
