// best_of: outputs of a request are kept until all have ended, and the best of them are handed out. Between the engine
// and who asked; the engine itself knows them as outputs like any other.
#pragma once
#include <cstdint>
#include <functional>

#include "engine/request/output.hpp"

namespace patchbay::engine {

// Of `made` outputs hands on the `n` with the highest cumulative_logprob, each as one output, the best with index 0.
// Complete ones come before those that were aborted or failed. [step]
std::function<void(const RequestOutput&)> best_of(uint32_t n, uint32_t made,
                                                  std::function<void(const RequestOutput&)> on_output);

}  // namespace patchbay::engine
