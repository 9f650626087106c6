// Any bytes as a config.json: an error or a flat map.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weights/checkpoint.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto config = patchbay::weights::flatten_json({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (!config && config.error().empty()) __builtin_trap();
    return 0;
}
