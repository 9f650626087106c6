// `patchbay bench machine | model`: what the machine can do, and how near a model comes to it.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_bench_command(Commands&);

}  // namespace patchbay::cli
