// The probe's child: gives away what it does not need, then runs the library's checks.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "host/probe.hpp"

namespace patchbay::probe {

// Writes the verdict to `fd`. timeout_s: of processor time, in case the parent cannot end it.
int run_child(int fd, uint32_t timeout_s, const std::filesystem::path& library,
              const std::optional<host::ProbedComponent>& only);

}  // namespace patchbay::probe
