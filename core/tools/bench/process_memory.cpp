#include "bench/process_memory.hpp"

#include <charconv>
#include <fstream>
#include <string>

namespace patchbay::bench {

void begin_peak() { std::ofstream("/proc/self/clear_refs") << "5"; } // see proc(5): resets VmHWM

ProcessMemory process_memory() {
    ProcessMemory out;
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);) { // "VmRSS:   12345 kB"
        uint64_t* const to = line.starts_with("VmRSS:") ? &out.now : line.starts_with("VmHWM:") ? &out.peak : nullptr;
        const size_t digit = line.find_first_of("0123456789");
        if (!to || digit == line.npos) continue;
        std::from_chars(line.data() + digit, line.data() + line.size(), *to);
        *to *= 1024;
    }
    return out;
}

}  // namespace patchbay::bench
