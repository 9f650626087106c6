// What tokens are named by.
#pragma once
#include <cstdint>

namespace patchbay::text {

using TokenId = int32_t;

}  // namespace patchbay::text
