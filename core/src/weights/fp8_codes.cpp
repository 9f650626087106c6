#include "weights/fp8_codes.hpp"

#include <cstring>
#include <utility>

namespace patchbay::weights {
namespace {

class Fp8Codes final : public CodeSource {
  public:
    Fp8Codes(Piece piece, const TensorView& view, uint32_t group)
        : piece_(std::move(piece)), view_(view), form_{PB_FP8, group, CodeForm::Offsets::kNone} {}

    CodeForm form() const override { return form_; }
    void unpack(int64_t begin, int64_t end, CodeRows& out) const override {
        for (int64_t r = begin; r < end; ++r) {
            const int64_t stored = stored_row(piece_, view_, piece_.row + r);
            const auto [data, row] = view_.find_row(stored);
            std::memcpy(out.codes_of(r - begin), data + row * piece_.width() + piece_.col,
                        static_cast<size_t>(piece_.cols));
            float* const scales = out.scales_of(r - begin);
            for (int64_t g = 0; g < out.groups; ++g)
                scales[g] = piece_.scales->at(stored, piece_.col + g * static_cast<int64_t>(form_.group));
        }
    }

  private:
    const Piece piece_;
    const TensorView view_;
    const CodeForm form_;
};

}  // namespace

std::shared_ptr<const CodeSource> fp8_codes(const Piece& piece, const TensorView& view) {
    if (view.encoding != Encoding::kF8_E4M3 || !piece.scales || lies_by_columns(piece, view)) return nullptr;
    const uint32_t group = device_group(piece.scales->block_cols, piece.width());
    // A rank's columns may begin within a block, but not within a group of one.
    if (group < 16 || (piece.scales->across > 1 && piece.col % group != 0)) return nullptr;
    return std::make_shared<Fp8Codes>(piece, view, group);
}

}  // namespace patchbay::weights
