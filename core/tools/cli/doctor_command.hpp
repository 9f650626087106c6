// `patchbay doctor`: what this machine offers, what is missing, and what mends it.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_doctor_command(Commands&);

}  // namespace patchbay::cli
