#include "weights/code_sources.hpp"

#include <algorithm>
#include <array>

#include "weights/blocks.hpp"

namespace patchbay::weights {
namespace {

class GgufCodes final : public CodeSource {
  public:
    GgufCodes(const Piece& piece, const TensorView& view, const BlockKind& kind)
        : piece_(piece), view_(view), kind_(kind), facts_(facts_of(view.encoding)) {}

    CodeForm form() const override { return kind_.form; }
    void unpack(int64_t begin, int64_t end, CodeRows& out) const override {
        for (int64_t r = begin; r < end; ++r) {
            const auto [data, row] = view_.find_row(stored_row(piece_, view_, piece_.row + r));
            unpack_row(data, row * piece_.width() + piece_.col,
                       {out.codes_of(r - begin), out.scales_of(r - begin), out.offsets_of(r - begin)});
        }
    }

  private:
    // Numbers [first, first + cols) of `data`, whole groups.
    void unpack_row(const std::byte* data, int64_t first, BlockCodes to) const {
        const int64_t block = facts_.block, group = kind_.form.group;
        std::array<int8_t, kMaxBlock> codes;
        std::array<float, kMaxGroups> scales, offsets;
        for (int64_t i = first, end = first + piece_.cols; i < end;) {
            const std::byte* const at = data + i / block * facts_.block_bytes;
            const int64_t skipped = i % block, n = std::min(block - skipped, end - i);
            if (n == block) {
                kind_.unpack(at, to);
            } else {
                kind_.unpack(at, {codes.data(), scales.data(), offsets.data()});
                std::copy_n(codes.begin() + skipped, n, to.codes);
                std::copy_n(scales.begin() + skipped / group, n / group, to.scales);
                std::copy_n(offsets.begin() + skipped / group, n / group, to.offsets);
            }
            if (kind_.zero) shift(to, n);
            to = {to.codes + n, to.scales + n / group, to.offsets + n / group};
            i += n;
        }
    }

    void shift(const BlockCodes& to, int64_t count) const {
        for (int64_t i = 0; i < count; ++i) to.codes[i] = static_cast<int8_t>(to.codes[i] - kind_.zero);
        for (int64_t g = 0; g < count / kind_.form.group; ++g) to.offsets[g] += kind_.zero * to.scales[g];
    }

    Piece piece_;
    TensorView view_;
    const BlockKind& kind_;
    EncodingFacts facts_;
};

}  // namespace

std::shared_ptr<const CodeSource> block_codes(const Piece& piece, const TensorView& view) {
    const BlockKind* const kind = block_kind(view.encoding);
    if (!kind || lies_by_columns(piece, view) || piece.col % kind->form.group || piece.cols % kind->form.group)
        return nullptr;
    return std::make_shared<GgufCodes>(piece, view, *kind);
}

}  // namespace patchbay::weights
