// What the processes below one use: read from /proc. For the probe's supervisor.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace patchbay::probe {

std::vector<pid_t> descendants(pid_t); // without itself

struct Usage {
    uint64_t memory = 0; // bytes that are not of files: own, shared and swapped
    uint64_t tasks = 0;  // processes and threads
};
// Of these together. Memory that several share counts once where it would exceed `limit` otherwise.
Usage usage_of(const std::vector<pid_t>&, uint64_t memory_limit);

uint64_t tasks_of_user(uid_t); // processes and threads

}  // namespace patchbay::probe
