// `patchbay worker`, and every other command where mpirun or srun started this process as a rank other than rank 0.
#pragma once
#include <optional>

#include "cli/command.hpp"

namespace patchbay::cli {

void add_worker_command(Commands&); // hidden: what rank 0 starts
// The exit code of a rank other than rank 0; none: this process is no such rank. parallel: called by one that is.
std::optional<int> run_as_rank(const std::function<Result<config::ParallelSettings>()>& parallel);

}  // namespace patchbay::cli
