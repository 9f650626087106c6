#include "runner/kv_dtypes.hpp"

#include <algorithm>

namespace patchbay::runner {

Result<std::vector<pb_dtype>> KvDTypes::by_layer(uint32_t layer_count) const {
    std::vector<pb_dtype> out(layer_count, default_dtype);
    std::vector<const KvDTypeOfLayers*> named(layer_count);
    for (const KvDTypeOfLayers& range : others) {
        const uint64_t first = range.first ? *range.first : layer_count - std::min(range.count, layer_count);
        if (first + range.count > layer_count)
            return fail(StatusCode::kInvalid,
                        "kv_cache_dtype_layers names layers " + range.layers + ", the model has " +
                        std::to_string(layer_count) + " (0 to " + std::to_string(layer_count - 1) + ")");
        for (uint64_t layer = first; layer < first + range.count; ++layer) {
            if (named[layer])
                return fail(StatusCode::kInvalid,
                            "kv_cache_dtype_layers names layer " + std::to_string(layer) + " twice, in " +
                            named[layer]->layers + " and in " + range.layers);
            named[layer] = &range;
            out[layer] = range.dtype;
        }
    }
    return out;
}

const char* kv_dtype_word(pb_dtype dtype) {
    switch (dtype) {
        case PB_BF16: return "bfloat16";
        case PB_FP8: return "fp8";
        case PB_I8: return "int8";
        default: return "float32";
    }
}

std::string text_of(const KvDTypes& dtypes) {
    std::string out = kv_dtype_word(dtypes.default_dtype);
    for (const KvDTypeOfLayers& range : dtypes.others)
        out += ", " + range.layers + ": " + kv_dtype_word(range.dtype);
    return out;
}

}  // namespace patchbay::runner
