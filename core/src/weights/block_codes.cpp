#include "weights/block_codes.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "weights/blocks.hpp"

namespace patchbay::weights {
namespace {

constexpr auto kNone = CodeForm::Offsets::kNone, kSome = CodeForm::Offsets::kSome;
constexpr int64_t kMaxBlock = 256, kMaxGroups = 16;

std::optional<CodeForm> form_of(Encoding encoding) {
    switch (encoding) {
        case Encoding::kQ2_K: return CodeForm{PB_I4, 16, kSome};
        case Encoding::kQ3_K: return CodeForm{PB_I4, 16, kNone};
        case Encoding::kQ4_0: return CodeForm{PB_I4, 32, kNone};
        case Encoding::kQ4_1: return CodeForm{PB_I4, 32, kSome};
        case Encoding::kQ4_K: return CodeForm{PB_I4, 32, kSome};
        case Encoding::kQ5_0: return CodeForm{PB_I8, 32, kNone};
        case Encoding::kQ5_1: return CodeForm{PB_I8, 32, kSome};
        case Encoding::kQ5_K: return CodeForm{PB_I8, 32, kSome};
        case Encoding::kQ6_K: return CodeForm{PB_I8, 16, kNone};
        case Encoding::kQ8_0: return CodeForm{PB_I8, 32, kNone};
        case Encoding::kIQ4_NL: return CodeForm{PB_I8, 32, kNone};
        case Encoding::kIQ4_XS: return CodeForm{PB_I8, 32, kNone};
        case Encoding::kMXFP4: return CodeForm{PB_I8, 32, kNone};
        default: return std::nullopt;
    }
}

void unpack_block(Encoding encoding, const std::byte* block, const BlockCodes& to) {
    switch (encoding) {
        case Encoding::kQ2_K: return unpack_q2_k(block, to);
        case Encoding::kQ3_K: return unpack_q3_k(block, to);
        case Encoding::kQ4_0: return unpack_q4_0(block, to);
        case Encoding::kQ4_1: return unpack_q4_1(block, to);
        case Encoding::kQ4_K: return unpack_q4_k(block, to);
        case Encoding::kQ5_0: return unpack_q5_0(block, to);
        case Encoding::kQ5_1: return unpack_q5_1(block, to);
        case Encoding::kQ5_K: return unpack_q5_k(block, to);
        case Encoding::kQ6_K: return unpack_q6_k(block, to);
        case Encoding::kQ8_0: return unpack_q8_0(block, to);
        case Encoding::kIQ4_NL: return unpack_iq4_nl(block, to);
        case Encoding::kIQ4_XS: return unpack_iq4_xs(block, to);
        case Encoding::kMXFP4: return unpack_mxfp4(block, to);
        default: return;
    }
}

class GgufCodes final : public CodeSource {
  public:
    GgufCodes(const Piece& piece, const TensorView& view, const CodeForm& form)
        : piece_(piece), view_(view), form_(form), facts_(facts_of(view.encoding)) {}

    CodeForm form() const override { return form_; }
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
        const int64_t block = facts_.block, group = form_.group;
        std::array<int8_t, kMaxBlock> codes;
        std::array<float, kMaxGroups> scales, offsets;
        for (int64_t i = first, end = first + piece_.cols; i < end;) {
            const std::byte* const at = data + i / block * facts_.block_bytes;
            const int64_t skipped = i % block, n = std::min(block - skipped, end - i);
            if (n == block) {
                unpack_block(view_.encoding, at, to);
            } else {
                unpack_block(view_.encoding, at, {codes.data(), scales.data(), offsets.data()});
                std::copy_n(codes.begin() + skipped, n, to.codes);
                std::copy_n(scales.begin() + skipped / group, n / group, to.scales);
                std::copy_n(offsets.begin() + skipped / group, n / group, to.offsets);
            }
            to = {to.codes + n, to.scales + n / group, to.offsets + n / group};
            i += n;
        }
    }

    Piece piece_;
    TensorView view_;
    CodeForm form_;
    EncodingFacts facts_;
};

}  // namespace

std::shared_ptr<const CodeSource> block_codes(const Piece& piece, const TensorView& view) {
    const auto form = form_of(view.encoding);
    if (!form || lies_by_columns(piece, view) || piece.col % form->group != 0 || piece.cols % form->group != 0)
        return nullptr;
    return std::make_shared<GgufCodes>(piece, view, *form);
}

}  // namespace patchbay::weights
