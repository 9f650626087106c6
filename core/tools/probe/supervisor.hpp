// The process between the probe's caller and the library under test: it bounds what the library may use, ends all that
// the library started when the probe is over, its caller is gone or time is up, and takes the probe's folder away.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace patchbay::probe {

struct Supervision {
    int verdict = -1;             // descriptor that the worker writes to; an error on it: the caller is gone
    int ending = -1;              // where the host::ProbeEnding goes
    uint32_t timeout_s = 60;      // of wall time
    uint64_t memory = 4ull << 30; // bytes, shared mappings included, of all processes together; 0: no limit
    std::filesystem::path folder; // of temporary files, removed at the end
};

// Starts the worker. Returns nothing there; here, once everything has ended, the exit code.
std::optional<int> supervise(const Supervision&);

}  // namespace patchbay::probe
