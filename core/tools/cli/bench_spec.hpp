// `patchbay bench spec`: what a proposer is worth for a model and a workload.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_spec_bench(Commands&, CLI::App* bench);

}  // namespace patchbay::cli
