// What a device can do at best, as it measures itself: every figure of a bench is compared with it.
#pragma once
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/engine_config.hpp"
#include "host/registry.hpp"

namespace patchbay::bench {

struct Limit {
    std::string name, unit; // "memory_read", "B/s"; see pb_limit
    double value;
};

struct Machine {
    std::string device; // what it calls itself
    uint32_t threads;
    std::vector<Limit> limits;
    double operator[](const std::string& name) const; // 0: not measured

    // The least seconds in which so many bytes are read that were read just before: of what the caches hold, by the
    // limits "memory_read_16MiB" and the like, between two of them in proportion. 0: not measured.
    struct Read {
        double seconds;
        std::string limit; // which one that is
    };
    Read read_of(double bytes) const;
};

// Takes a second or two. Fails where the device cannot tell. threads 0: as many as there are cores.
Result<Machine> measure_machine(const host::Registry&, const config::PluginChoice& device, uint32_t threads);

std::string table_of(const Machine&);          // for a terminal
std::string with_prefix(double value, const std::string& unit); // 2.34e10 B/s: "23.4 GB/s"

}  // namespace patchbay::bench
