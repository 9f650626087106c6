#include "cli/run_program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace patchbay::cli {

int run_program(const std::vector<std::string>& words, ProgramOutput output) {
    std::vector<char*> argv;
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        if (const int null = output == ProgramOutput::kDropped ? open("/dev/null", O_WRONLY) : -1; null >= 0) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
        }
        execvp(argv[0], argv.data());
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace patchbay::cli
