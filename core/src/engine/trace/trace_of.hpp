// Which engine a file of steps is of.
#pragma once
#include <cstdint>
#include <string>

namespace patchbay::engine {

struct TraceOf { // where several engines are shown together, as join_traces() does it
    std::string name{};     // before the names of its processes; empty: it is alone
    uint32_t number = 0;    // of it among them
    uint64_t origin_ns = 0; // the time that the trace shows as 0
};

}  // namespace patchbay::engine
