// `patchbay bench`: what the machine can do, how near a model comes to it, and what the host itself costs.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_bench_command(Commands&);

}  // namespace patchbay::cli
