// The machine and the build, as recorded beside every result.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace patchbay::experiment {

struct MachineFacts {
    std::string cpu, os, kernel, build, commit; // build: compiler; commit: of the source tree, if there is one
    uint32_t cores = 0;                         // this process may use
    uint64_t memory_bytes = 0;
};

// source_root: the checkout that the program was built in; may be empty.
MachineFacts machine_facts(const std::filesystem::path& source_root);

}  // namespace patchbay::experiment
