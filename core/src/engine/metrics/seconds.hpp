// The engine counts nanoseconds, Prometheus takes seconds.
#pragma once
#include <cstdint>

namespace patchbay::engine {

inline double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }
inline uint64_t since(uint64_t from_ns, uint64_t to_ns) { return to_ns > from_ns ? to_ns - from_ns : 0; }

}  // namespace patchbay::engine
