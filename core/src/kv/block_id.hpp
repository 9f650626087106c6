// The number of a block of the pool, which is also that of its page in memory.
#pragma once
#include <cstdint>

namespace patchbay::kv {

using BlockId = int32_t;

inline constexpr BlockId kNoBlock = -1;

}  // namespace patchbay::kv
