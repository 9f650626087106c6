// How subcommands join the program: each adds itself to the app and leaves what to do when it was chosen.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "cli/print_error.hpp"
#include "config/engine_config.hpp"

namespace patchbay::cli {

// Exit codes of every subcommand.
inline constexpr int kOk = 0, kFailed = 1, kUsage = 2;

struct Commands {
    CLI::App& app;
    std::function<int()> chosen; // set by the callback of the subcommand that was given; returns the exit code
    // Likewise, of those that make engines, which may have several ranks: how these wait for one another.
    std::function<Result<config::ParallelSettings>()> parallel;
};

// What a subcommand does with its options once it was chosen.
template <class Options>
struct Action {
    Result<> (*run)(const Options&);
    PrintText* print = print_faults;                                         // the error of run()
    void (*check)(const Options&) = nullptr;                                 // throws a fault of usage
    Result<config::ParallelSettings> (*parallel)(const Options&) = nullptr;  // as above
};

// With its parents: "patchbay config show".
std::string full_name(const CLI::App&);

template <class Options>
void set_action(Commands& commands, CLI::App* app, const std::shared_ptr<Options>& o,
                std::type_identity_t<Action<Options>> action) {
    app->callback([&commands, app, o, action] {
        if (action.check) action.check(*o);
        if (action.parallel) commands.parallel = [o, action] { return action.parallel(*o); };
        commands.chosen = [app, o, action] { return exit_code(full_name(*app), action.run(*o), action.print); };
    });
}

// The arguments as CLI11 reads them: `--name=` as --name and an empty value, for which it would take the next argument.
std::vector<std::string> with_empty_values(const CLI::App& program, const std::vector<std::string>& arguments);

// "patchbay", or with the subcommands that were given: "patchbay config show".
std::string command_name(const CLI::App& program);
// What is wrong with a command line, in one line that names the command and the word: "patchbay: unknown command
// 'genrate' (did you mean 'generate'?)".
std::string usage_fault(const CLI::App& program, const CLI::ParseError&);

}  // namespace patchbay::cli
