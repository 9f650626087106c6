#include "cli/interruption.hpp"

#include <csignal>

namespace patchbay::cli {
namespace {

volatile std::sig_atomic_t was_interrupted = 0;

}  // namespace

void catch_interrupts() {
    std::signal(SIGINT, [](int) {
        was_interrupted = 1;
        std::signal(SIGINT, SIG_DFL);
    });
    std::signal(SIGTERM, [](int) {
        was_interrupted = 1;
        std::signal(SIGTERM, SIG_DFL);
    });
}

bool interrupted() { return was_interrupted != 0; }

}  // namespace patchbay::cli
