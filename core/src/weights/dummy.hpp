// Random weights, a function of (seed, name, index) only, so that any slice can be made by itself.
#pragma once
#include <cstdint>
#include <string_view>

namespace patchbay::weights {

// `load_format: dummy`: values [first, first + count) of a tensor: vectors (norm weights) near 1, matrices uniform with
// the variance that keeps activations of size 1.
void fill_dummy(uint64_t seed, std::string_view name, int64_t rows, int64_t cols, int64_t first, int64_t count,
                float* out);

}  // namespace patchbay::weights
