// grown.hpp - what a plugin of a later day relies on: fields that the host does not know read as 0.
#pragma once
#include "patchbay/plugin.hpp"

namespace kept {

// PB_GROWN: the headers have fields that no host has; see tests/abi/change-headers.
template <class T>
void expect_zero_growth([[maybe_unused]] const T& given, [[maybe_unused]] const char* what) {
#ifdef PB_GROWN
    for (const uint64_t x : given.grown)
        if (x != 0)
            throw patchbay::Error(PB_FAILED, std::string(what) + ": a field that the host does not know is not 0");
#endif
}

}  // namespace kept
