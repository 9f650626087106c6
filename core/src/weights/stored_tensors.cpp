#include "weights/stored_tensors.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/refusals.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::weights {

// A checkpoint of a bare model, without its head, names tensors without their first word: "wte.weight" for
// "transformer.wte.weight". One of a model that also sees has "language_model.model.norm.weight", or, written by
// transformers 4.52 or later, "model.language_model.norm.weight" and "lm_head.weight".
std::string StoredTensors::stored_name(const std::string& name) const {
    if (checkpoint_->has(name)) return name;
    const std::string bare = name.substr(name.find('.') + 1);
    if (bare.find('.') != bare.npos && checkpoint_->has(bare)) return bare;
    constexpr std::string_view kText = "language_model.model.";
    if (!name.starts_with(kText)) return name;
    const std::string newer = "model.language_model." + name.substr(kText.size());
    return checkpoint_->has(newer) ? newer : name;
}

Result<TensorView> StoredTensors::tensor(const std::string& name) const {
    return checkpoint_->tensor(stored_name(name));
}

std::optional<std::string> StoredTensors::packed_module(const std::string& name) const {
    constexpr std::string_view kWeight = ".weight";
    if (!checkpoint_ || !name.ends_with(kWeight)) return std::nullopt;
    const bool compressed = packed_ && packed_->method == PackedFormat::Method::kCompressed;
    const std::string stored = stored_name(name);
    if (checkpoint_->has(stored)) { // perhaps as codes of 8 bits
        const auto view = compressed ? checkpoint_->tensor(stored) : Result<TensorView>(fail(""));
        if (!view || view->encoding != Encoding::kI8) return std::nullopt;
        return stored.substr(0, stored.size() - kWeight.size());
    }
    const bool mxfp4 = packed_ && packed_->method == PackedFormat::Method::kMxfp4;
    const std::string_view kind = mxfp4 ? ".weight_blocks" : compressed ? ".weight_packed" : ".qweight";
    const std::string packed = stored_name(name.substr(0, name.size() - kWeight.size()) + std::string(kind));
    if (!checkpoint_->has(packed)) return std::nullopt;
    return packed.substr(0, packed.size() - kind.size());
}

Result<> StoredTensors::check(const Piece& piece) const {
    if (!checkpoint_) return {};
    PB_TRY(const TensorView view, tensor(piece.name));
    std::vector<int64_t> shape = piece.shape;
    if (piece.stored == Piece::Stored::kTransposed) std::reverse(shape.begin(), shape.end());
    // A convolution's taps, (channels, 1, taps), are a vector here.
    const bool taps = shape.size() == 1 && view.shape.size() == 3 && view.shape[1] == 1 &&
                      view.shape[0] * view.shape[2] == shape[0];
    if (view.shape != shape && !taps)
        return invalid("tensor '" + piece.name + "' is " + shape_text(view.shape) + " but the model needs " +
                       shape_text(shape) + " (is config.json of another model?)");
    if (!is_real(view.encoding))
        return unsupported("tensor '" + piece.name + "' holds " + facts_of(view.encoding).name +
                           ", but a weight is f32, bf16 or f16");
    return {};
}

Result<> StoredTensors::find_scales(Piece& piece) const {
    if (!checkpoint_) return {};
    PB_TRY(const TensorView view, tensor(piece.name));
    if (view.encoding != Encoding::kF8_E4M3) return {};
    if (piece.stored == Piece::Stored::kTransposed)
        return unsupported("tensor '" + piece.name + "' is F8_E4M3 and stored transposed, which is not supported");
    PB_TRY(piece.scales, fp8_scales(packed_, *checkpoint_, stored_name(piece.name), piece.shape));
    return {};
}

void StoredTensors::forget(const std::string& name) const {
    if (!checkpoint_) return;
    if (const auto module = packed_module(name))
        for (const char* kind : {".qweight", ".scales", ".qzeros", ".weight_packed", ".weight", ".weight_scale",
                                 ".weight_blocks", ".weight_scales"})
            checkpoint_->forget(*module + kind);
    else checkpoint_->forget(stored_name(name));
}

}  // namespace patchbay::weights
