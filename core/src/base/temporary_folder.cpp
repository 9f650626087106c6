#include "base/temporary_folder.hpp"

#include <cstdlib>

#include "base/refusals.hpp"

namespace patchbay {

Result<std::filesystem::path> temporary_folder() {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    if (!error) return folder;
    for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) // as the standard library looks
        if (const char* const value = std::getenv(name))
            return invalid(std::string(name) + " is '" + value + "', expected a folder for temporary files");
    return invalid("there is no folder for temporary files: /tmp cannot be used, and TMPDIR is not set");
}

}  // namespace patchbay
