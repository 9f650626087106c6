// The flags --trace, --decision-log and --kv-events of commands that run an engine.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "engine/trace/step_file_paths.hpp"

namespace patchbay::cli {

// whose: "" or " of ...", for the help.
void add_step_file_flags(CLI::App&, const std::shared_ptr<engine::StepFilePaths>&, const std::string& whose = {});

}  // namespace patchbay::cli
