// What a step that failed says to the requests that the engine had.
#pragma once
#include "base/result.hpp"

namespace patchbay::engine {

// None of them is at fault, whatever a plugin refused in the step, and repeating one may help once the engine is back.
inline Failure for_requests(Failure of_step) {
    const bool says_so = of_step.code == StatusCode::kUnavailable || of_step.code == StatusCode::kInternal;
    if (!says_so) of_step.code = StatusCode::kFailed;
    return of_step;
}

}  // namespace patchbay::engine
