// What requests, their sequences and tokens are named by.
#pragma once
#include <cstdint>

#include "text/token_id.hpp"

namespace patchbay::engine {

using RequestId = uint64_t;
using text::TokenId;
using QueueTicket = int64_t; // where a sequence waits in the order of WaitingQueue; kept with the sequence

}  // namespace patchbay::engine
