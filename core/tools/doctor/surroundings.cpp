#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "doctor/findings.hpp"

namespace patchbay::doctor {

Surroundings this_machine() {
    Surroundings out;
    out.can_load = [](const std::string& library) {
        void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (handle) dlclose(handle);
        return handle != nullptr;
    };
    out.in_path = [](const std::string& program) {
        const char* path = std::getenv("PATH");
        std::istringstream folders(path ? path : "");
        for (std::string folder; std::getline(folders, folder, ':');)
            if (access((std::filesystem::path(folder) / program).c_str(), X_OK) == 0) return true;
        return false;
    };
    return out;
}

}  // namespace patchbay::doctor
