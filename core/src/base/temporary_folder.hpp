// The folder for files that do not outlive the process: TMPDIR, or /tmp. Used by the host.
#pragma once
#include <filesystem>

#include "base/result.hpp"

namespace patchbay {

Result<std::filesystem::path> temporary_folder();

}  // namespace patchbay
