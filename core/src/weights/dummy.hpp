// Random weights, a function of (seed, name, index) only, so that any slice can be made by itself.
#pragma once
#include <cstdint>
#include <string_view>

namespace patchbay::weights {

// Values [first, first + count) of the tensor that fill_dummy() makes.
void fill_dummy_slice(uint64_t seed, std::string_view name, int64_t rows, int64_t cols, int64_t first, int64_t count,
                      float* out);

}  // namespace patchbay::weights
