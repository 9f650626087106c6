// `patchbay bench scheduler | kv`: what the host itself costs, without a model.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_host_benches(Commands&, CLI::App* bench);

}  // namespace patchbay::cli
