// How layers keep their KV: plain data, apart from what is made of it (kv/groups.hpp).
#pragma once
#include <cstddef>

namespace patchbay::kv {

enum class GroupKind { kFull, kSliding, kRecurrent }; // what its layers keep of a sequence: all, a window, a state
inline constexpr size_t kGroupKinds = 3;

}  // namespace patchbay::kv
