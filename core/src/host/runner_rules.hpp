// What a proposer may ask of patchbay.runner/1, checked before it is done. Used by the engine, and by the conformance
// suite in its place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.hpp"
#include "patchbay/abi/services.h"
#include "patchbay/sizes.hpp"

namespace patchbay::host {

inline constexpr uint32_t kMaxTopTokens = 100; // as many as a request may have

inline pb_runner_row row_of(const pb_runner_batch& batch, uint32_t i) {
    return widened<pb_runner_row>(reinterpret_cast<const char*>(batch.rows) + size_t{i} * batch.row_stride,
                                  batch.row_stride);
}

// Where to write the row's distribution; nullptr: it is not wanted, or by a plugin that does not know of it.
inline float* probs_of(const pb_runner_batch& batch, uint32_t i, uint32_t vocab_size) {
    const bool known = batch.struct_size >= offsetof(pb_runner_batch, probs) + sizeof batch.probs;
    return known && batch.probs ? batch.probs + size_t{i} * vocab_size : nullptr;
}

struct RunnerRules {
    uint32_t model, vocab_size;
    std::function<std::optional<uint32_t>(uint64_t id)> max_drafts; // of a row of the propose() under way; else nothing
};

Result<> check_batch(const pb_runner_batch&, const RunnerRules&);

}  // namespace patchbay::host
