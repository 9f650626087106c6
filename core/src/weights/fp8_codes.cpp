#include "weights/code_sources.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "patchbay/sdk/weight_checks.hpp"

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

uint32_t fp8_group(int64_t block_cols, const Piece& piece) {
    if (block_cols <= 0 || block_cols >= piece.width()) return device_group(piece.width(), piece.width());
    uint32_t group = device_group(block_cols, piece.width());
    while (group >= 16 && piece.col % group != 0) group /= 2; // a rank's columns may begin within a block
    return group;
}

std::shared_ptr<const CodeSource> fp8_codes(const Piece& piece, const TensorView& view) {
    if (view.encoding != Encoding::kF8_E4M3 || !piece.scales || lies_by_columns(piece, view)) return nullptr;
    const uint32_t group = fp8_group(piece.scales->block_cols, piece);
    const auto too_great = [](float scale) { return !(std::abs(scale) < kMaxFp8Scale); };
    if (group < 16 || std::ranges::any_of(piece.scales->values, too_great)) return nullptr;
    return std::make_shared<Fp8Codes>(piece, view, group);
}

}  // namespace patchbay::weights
