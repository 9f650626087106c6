// A host without services: one thread, no clock, no metrics.
#pragma once
#include "patchbay/abi.h"

namespace patchbay {

inline pb_host bare_host() {
    return {sizeof(pb_host), 0, nullptr, [](void*, int32_t, pb_str) {}, [](void*, pb_str) {},
            [](void*, const char*) -> const void* { return nullptr; }};
}

}  // namespace patchbay
