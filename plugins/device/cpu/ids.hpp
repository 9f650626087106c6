// Checks the values of ids, which kernels use as indices. For the files of the ops.
#pragma once
#include "patchbay/sdk/op_checks.hpp"

namespace patchbay {

// i32, contiguous. Throws Mismatch unless each is in [0, limit).
inline const int32_t* checked_ids(const char* name, const pb_tensor& t, int64_t limit) {
    const auto* const ids = static_cast<const int32_t*>(t.data);
    for (int64_t i = 0, count = elements(t); i < count; ++i)
        if (ids[i] < 0 || ids[i] >= limit)
            throw Mismatch{std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(ids[i]) +
                           ", expected 0 to " + std::to_string(limit - 1)};
    return ids;
}

}  // namespace patchbay
