// Which type each layer's keys and values have. Used by the ModelRunner, and by the engine for its own account.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "patchbay/abi/tensor.h"

namespace patchbay::runner {

struct KvDTypeOfLayers {
    std::string layers;            // as they were named: "0-3"
    std::optional<uint32_t> first; // none: the last `count`
    uint32_t count = 0;
    pb_dtype dtype = PB_F32;
};

struct KvDTypes {
    pb_dtype default_dtype = PB_F32; // of all layers but the others
    std::vector<KvDTypeOfLayers> others; // no layer twice

    // Refuses layers that the model does not have, or that are named twice.
    Result<std::vector<pb_dtype>> by_layer(uint32_t layer_count) const;
};

const char* kv_dtype_word(pb_dtype); // as in a configuration: "bfloat16"
std::string text_of(const KvDTypes&); // "int8, 0-3: bfloat16"

}  // namespace patchbay::runner
