// `patchbay bench kv-quality`. Part of the command `bench`.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_kv_quality_bench(Commands&, CLI::App* bench);

}  // namespace patchbay::cli
