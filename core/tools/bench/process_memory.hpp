// How much memory this process has: for measurements of loading.
#pragma once
#include <cstdint>

namespace patchbay::bench {

struct ProcessMemory { // bytes that are resident; 0: the system does not say
    uint64_t now = 0;
    uint64_t peak = 0; // since begin_peak(), or since the process began
};
void begin_peak();
ProcessMemory process_memory();

}  // namespace patchbay::bench
