// What a rank other than rank 0 does: loads its share of the model that rank 0 serves, and computes the same batches.
// It has no scheduler, sampler or requests.
#pragma once
#include "base/result.hpp"
#include "parallel/spoke.hpp"

namespace patchbay::execution {

// One engine of rank 0's after the other, until it says that there will be no more. Fails when rank 0 is gone.
Result<> serve_rank(parallel::Spoke&, uint32_t rank, uint32_t size);

}  // namespace patchbay::execution
