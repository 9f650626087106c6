// Which running engine a command is about: its admin address, named by flags or found where one engine runs.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "serve/admin_address.hpp"
#include "serve/fields.hpp"

namespace patchbay::cli {

struct RunningEngineFlags {
    std::string address, token_file;
};

void add_flags_of_running_engine(CLI::App&, const std::shared_ptr<RunningEngineFlags>&); // --admin, --admin-token-file
void check(const RunningEngineFlags&); // throws CLI::ValidationError

// The one that is named, else the only one that runs. The failure of several lists them.
Result<serve::AdminAddress> running_engine(const RunningEngineFlags&);

std::string params_text(const serve::Json& params); // of a slot in /status: "ageing=10 depth=2"

}  // namespace patchbay::cli
