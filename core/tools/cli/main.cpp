// patchbay: one program, one file a subcommand.
#include <fcntl.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/crash_report.hpp"
#include "base/suggest.hpp"
#include "base/thread_stack.hpp"
#include "cli/commands.hpp"
#include "cli/report_command.hpp"
#include "patchbay/abi.h"

namespace patchbay::cli {
namespace {

std::string versions() {
    return "patchbay " PATCHBAY_VERSION ", plugin ABI " + std::to_string(PB_ABI_MAJOR) + "." +
           std::to_string(PB_ABI_MINOR);
}

void add_version_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("version", "Print the versions of program and plugin contract");
    app->footer("Example:\n  patchbay version");
    app->callback([&commands] {
        commands.chosen = [] {
            std::cout << versions() << '\n';
            return kOk;
        };
    });
}

void log_to_stderr() { // standard output is for results
    auto logger = spdlog::stderr_color_st("patchbay");
    logger->set_formatter(log_formatter());
    static const std::vector<std::string> kLevels = {"debug", "info", "warn", "err", "off"};
    const char* const given = std::getenv("PATCHBAY_LOG");
    const std::string level = given ? given : "warn";
    const spdlog::level::level_enum found = spdlog::level::from_str(level); // off of what it does not know
    const bool known = found != spdlog::level::off || level == "off";
    logger->set_level(known ? found : spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
    if (!known)
        spdlog::warn("PATCHBAY_LOG is '{}', expected debug, info, warn, err or off{}; taken as warn", level,
                     did_you_mean(level, kLevels));
}

// A closed descriptor would be the next file's that is opened, and output would go there.
void hold_closed_streams() {
    for (const int fd : {0, 1, 2}) // the lowest free one is taken; reading from 0 and writing to 1 or 2 fails
        if (fcntl(fd, F_GETFD) == -1) (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int run(int argc, char** argv) {
    CLI::App app("Patchbay: an LLM inference engine in which every policy is a plugin", "patchbay");
    app.require_subcommand(1);
    app.footer(
        "Examples:\n"
        "  patchbay generate --model models/demo-target --prompt \"Once upon a time\"\n"
        "  patchbay run experiments/quickstart/experiment.yaml\n"
        "  patchbay plugin list\n"
        "Exit codes: 0 done, 1 the work failed, 2 bad usage.\n"
        "PATCHBAY_LOG sets the log level: debug, info, warn (the default), err, off.");
    Commands commands{app, {}};
    add_generate_command(commands);
    add_serve_command(commands);
    add_chat_command(commands);
    add_tokenize_commands(commands);
    add_admin_commands(commands);
    add_top_command(commands);
    add_run_command(commands);
    add_report_command(commands);
    add_runs_command(commands);
    add_workload_command(commands);
    add_bench_command(commands);
    add_scenario_command(commands);
    add_doctor_command(commands);
    add_plugin_command(commands);
    add_models_command(commands);
    add_config_command(commands);
    add_version_command(commands);
    app.set_version_flag("--version", versions(), "Print the versions and exit");
    add_worker_command(commands);
    add_run_child_command(commands);
    try {
        auto arguments = with_empty_values(app, {argv + std::min(argc, 1), argv + argc});
        std::ranges::reverse(arguments); // as CLI11 takes them
        app.parse(std::move(arguments));
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e); // --help
        print_error("", usage_fault(app, e));
        return kUsage;
    }
    try {
        if (commands.parallel)
            if (const auto code = run_as_rank(commands.parallel)) return *code;
        return commands.chosen();
    } catch (const std::exception& e) { // what ends the operation
        print_error(command_name(app), e.what());
        return kFailed;
    }
}

}  // namespace
}  // namespace patchbay::cli

int main(int argc, char** argv) {
    patchbay::cli::hold_closed_streams();
    std::signal(SIGCHLD, SIG_DFL); // a parent may have had it ignored, and then no child can be waited for
    std::signal(SIGXFSZ, SIG_IGN); // a write beyond the limit then fails, and is reported as any other
    patchbay::report_crashes();
    patchbay::cli::log_to_stderr();
    int code = 0;
    patchbay::run_with_stack([&] { code = patchbay::cli::run(argc, argv); });
    patchbay::expect_exit();
    if (std::cout.flush()) return code;
    std::cerr << "patchbay: cannot write standard output: is it closed, or the disk full?\n";
    return patchbay::cli::kFailed;
}
