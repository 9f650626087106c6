// What requests, their sequences and tokens are named by.
#pragma once
#include <cstdint>

#include "text/token_id.hpp"

namespace patchbay::engine {

using RequestId = uint64_t;
using text::TokenId;

}  // namespace patchbay::engine
