// What a checkpoint's weights are, for the choices that are left to it.
#include "base/refusals.hpp"
#include "weights/loader.hpp"

namespace patchbay::weights {
namespace {

// Of the largest real tensor.
std::optional<Encoding> main_encoding(const Checkpoint& checkpoint) {
    uint64_t max_bytes = 0;
    std::optional<Encoding> out;
    for (const std::string& name : checkpoint.names()) {
        const auto view = checkpoint.tensor(name);
        if (!view || !is_real(view->encoding) || (out && view->bytes <= max_bytes)) continue;
        max_bytes = view->bytes;
        out = view->encoding;
    }
    return out;
}

std::string dtype_said(const FlatConfig& config) { // empty: none
    for (const char* key : {"dtype", "torch_dtype"})
        if (const auto at = config.find(key); at != config.end() && at->second != "null") return at->second;
    return "";
}

}  // namespace

Result<pb_dtype> WeightSource::native_dtype(const FlatConfig& config) const {
    if (const Checkpoint* checkpoint = stored_.checkpoint()) {
        const auto stored = main_encoding(*checkpoint);
        if (!stored) return unsupported("the checkpoint holds no f32, bf16 or f16 tensor");
        return stored_.packed() || *stored != Encoding::kF32 ? PB_BF16 : PB_F32;
    }
    const std::string said = dtype_said(config);
    return stored_.packed() || said == "bfloat16" || said == "float16" ? PB_BF16 : PB_F32;
}

bool WeightSource::stores_f16(const FlatConfig& config) const {
    if (stored_.packed()) return false;
    if (const Checkpoint* checkpoint = stored_.checkpoint()) return main_encoding(*checkpoint) == Encoding::kF16;
    return dtype_said(config) == "float16";
}

std::string WeightSource::stored_quantization() const {
    if (stored_.packed()) return stored_.packed()->name();
    const auto stored = stored_.checkpoint() ? main_encoding(*stored_.checkpoint()) : std::nullopt;
    return stored && in_blocks(*stored) ? facts_of(*stored).name : "none";
}

}  // namespace patchbay::weights
