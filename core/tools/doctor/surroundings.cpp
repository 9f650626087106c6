#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/child_process.hpp"
#include "doctor/findings.hpp"

namespace patchbay::doctor {
namespace {

bool runs_silently(const std::vector<std::string>& words) {
    const SpawnWords argv(words);
    const pid_t child = fork();
    if (child == 0) {
        const int nothing = open("/dev/null", O_RDWR);
        for (const int stream : {0, 1, 2}) dup2(nothing, stream);
        execvp(argv.get()[0], argv.get());
        _exit(127);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

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
    out.runs = runs_silently;
    return out;
}

}  // namespace patchbay::doctor
