// patchbay: one program, one file a subcommand.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <iostream>

#include "cli/command.hpp"
#include "cli/config_command.hpp"
#include "cli/generate_command.hpp"
#include "cli/plugin_command.hpp"
#include "cli/report_command.hpp"
#include "cli/run_command.hpp"
#include "patchbay/abi.h"

namespace patchbay::cli {
namespace {

void add_version_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("version", "Print the versions of program and plugin contract");
    app->footer("Example:\n  patchbay version");
    app->callback([&commands] {
        commands.chosen = [] {
            std::cout << "patchbay " PATCHBAY_VERSION ", plugin ABI " << PB_ABI_MAJOR << '.' << PB_ABI_MINOR << '\n';
            return kOk;
        };
    });
}

void log_to_stderr() { // standard output is for results
    auto logger = spdlog::stderr_color_st("patchbay");
    logger->set_pattern("%^%l%$: %v");
    const char* level = std::getenv("PATCHBAY_LOG");
    logger->set_level(level ? spdlog::level::from_str(level) : spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
}

int run(int argc, char** argv) {
    CLI::App app("Patchbay: an LLM inference engine in which every policy is a plugin", "patchbay");
    app.require_subcommand(1);
    app.footer("Examples:\n"
               "  patchbay generate --model models/demo-target --prompt \"Once upon a time\"\n"
               "  patchbay run experiments/quickstart/experiment.yaml\n"
               "  patchbay plugin list\n"
               "Exit codes: 0 done, 1 the work failed, 2 bad usage. PATCHBAY_LOG sets the log level (debug, info, warn).");
    Commands commands{app, {}};
    add_generate_command(commands);
    add_run_command(commands);
    add_report_command(commands);
    add_plugin_command(commands);
    add_config_command(commands);
    add_version_command(commands);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? kOk : kUsage;
    }
    return commands.chosen ? commands.chosen() : kUsage;
}

}  // namespace
}  // namespace patchbay::cli

int main(int argc, char** argv) {
    patchbay::cli::log_to_stderr();
    try {
        return patchbay::cli::run(argc, argv);
    } catch (const std::exception& e) { // what ends the operation
        std::cerr << "patchbay: " << e.what() << '\n';
        return patchbay::cli::kFailed;
    }
}
