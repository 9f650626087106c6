// A folder of this process, deleted with it: test programs run at the same time, each writing the files that it reads.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace patchbay::engine::testing {

inline const std::filesystem::path& temporary_folder() {
    struct Folder {
        Folder() {
            std::string name = (std::filesystem::temp_directory_path() / "patchbay-engine-XXXXXX").string();
            if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
            path = name;
        }
        ~Folder() {
            std::error_code ignored;
            std::filesystem::remove_all(path, ignored);
        }
        std::filesystem::path path;
    };
    static const Folder folder;
    return folder.path;
}

}  // namespace patchbay::engine::testing
