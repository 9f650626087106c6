// The machine and the build, as recorded beside every result.
#pragma once
#include <cstdint>
#include <string>

namespace patchbay::experiment {

struct MachineFacts {
    std::string cpu, os, kernel, build; // build: compiler
    std::string program_sha256;         // of the file that this process runs; empty: it cannot be read
    uint32_t cores = 0;                 // this process may use
    uint64_t memory_bytes = 0;
};

MachineFacts machine_facts();

}  // namespace patchbay::experiment
