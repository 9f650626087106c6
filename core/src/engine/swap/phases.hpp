// Phases in which a swap can fail that more than one part names; docs/hot-swap.md has all of them.
#pragma once

namespace patchbay::engine {

inline constexpr const char* kTimePhase = "time"; // a call on probation that ended well, but took too long

}  // namespace patchbay::engine
