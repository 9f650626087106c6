// How subcommands join the program: each adds itself to the app and leaves what to do when it was chosen.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>

#include "base/result.hpp"
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

}  // namespace patchbay::cli
