// run_by_hand LIBRARIES PROGRAM ARGUMENTS…: the program at the level amx, whose tiles one of the libraries carries out.
// A sentence and exit status 77 where this machine does not need it, or cannot.
#include <cstdio>
#include <cstdlib>

#include "machine.hpp"

int main(int count, char** arguments) {
    if (count < 3) {
        std::fprintf(stderr, "run_by_hand: expected LIBRARIES PROGRAM ARGUMENTS…\n");
        return 2;
    }
    if (const char* reason = patchbay::amx_by_hand::why_not_by_hand()) {
        std::printf("skipped: %s\n", reason);
        return 77;
    }
    setenv("LD_PRELOAD", arguments[1], 1);
    execv(arguments[2], arguments + 2);
    std::perror(arguments[2]);
    return 2;
}
