// Multiplications of many rows in vectors, split over the workers. For linear().
#pragma once
#include "cpu/tables.hpp"

namespace patchbay::kernels {

void linear_blocks(const Machine&, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w); // not quantised

}  // namespace patchbay::kernels
