// Numbers of files, at any address.
#pragma once
#include <cstddef>
#include <cstring>

namespace patchbay::weights {

template <class T>
T raw_value(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

}  // namespace patchbay::weights
