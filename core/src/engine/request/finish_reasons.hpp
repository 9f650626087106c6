// What finish reasons are to schedulers and to clients, a row each. Used by the scheduler's port and by serve.
#pragma once
#include <cstddef>
#include <iterator>

#include "engine/request/request.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::engine {

struct FinishReasonInfo {
    FinishReason reason;
    pb_finish_reason for_scheduler; // 0: it is never shown one
    bool shows_stop_reason;         // to clients: what stopped the output
};
inline constexpr FinishReasonInfo kFinishReasonInfos[] = {
    {FinishReason::kNone, 0, false},
    {FinishReason::kStop, PB_FINISH_STOP, true},
    {FinishReason::kLength, PB_FINISH_LENGTH, false},
    {FinishReason::kAbort, PB_FINISH_ABORT, false},
    {FinishReason::kError, PB_FINISH_ERROR, false},
    {FinishReason::kRepetition, PB_FINISH_STOP, true},
};

constexpr const FinishReasonInfo& info_of(FinishReason reason) {
    return kFinishReasonInfos[static_cast<size_t>(reason)];
}
static_assert([] {
    for (size_t i = 0; i < kFinishReasons; ++i)
        if (kFinishReasonInfos[i].reason != static_cast<FinishReason>(i)) return false;
    return std::size(kFinishReasonInfos) == kFinishReasons;
}(), "a row for each, in their order");

}  // namespace patchbay::engine
