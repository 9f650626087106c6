// How much memory of a device is left for KV: gpu_memory_utilization, measured with a pass over the largest batch.
#pragma once
#include <cstdint>

#include "base/result.hpp"
#include "runner/open_device.hpp"
#include "runner/runner_settings.hpp"

namespace patchbay::runner {

class ModelRunner;

// As many sequences as run at once, which share all of the token budget, with so many rows of logits; every block of
// theirs is the one page. Where a sampler is on the device, it samples all rows. What that took stays taken.
Result<> run_largest(ModelRunner&, const RunnerSettings&, uint32_t rows);
// Bytes that are left of its share.
Result<uint64_t> memory_left(const OpenDevice&, double share);

}  // namespace patchbay::runner
