#include "weights/code_sources.hpp"

#include "base/refusals.hpp"
#include "weights/mx_numbers.hpp"

namespace patchbay::weights {
namespace {

constexpr int64_t kBlock = 32; // columns that share a scale

class Mxfp4Codes final : public CodeSource {
  public:
    Mxfp4Codes(const Piece& piece, const TensorView& blocks, const TensorView& scales, uint32_t group)
        : piece_(piece), blocks_(blocks), scales_(scales), group_(group) {}

    CodeForm form() const override { return {PB_I8, group_, CodeForm::Offsets::kNone}; }

    void unpack(int64_t begin, int64_t end, CodeRows& out) const override {
        const int64_t width = piece_.shape[1];
        for (int64_t r = begin; r < end; ++r) {
            const int64_t row = stored_row(piece_, blocks_, piece_.row + r);
            const std::byte* const numbers = blocks_.data + row * (width / 2);
            int8_t* const codes = out.codes_of(r - begin);
            for (int64_t c = 0; c < piece_.cols; ++c) {
                const int64_t col = piece_.col + c;
                codes[c] = kTwiceE2m1[std::to_integer<unsigned>(numbers[col / 2]) >> (col % 2 * 4) & 15u];
            }
            for (int64_t g = 0; g < out.groups; ++g)
                out.scales_of(r - begin)[g] =
                    half_of_e8m0(scales_.data[row * (width / kBlock) + (piece_.col + g * group_) / kBlock]);
        }
    }

  private:
    Piece piece_;
    TensorView blocks_, scales_;
    uint32_t group_; // kBlock, or half of it where a rank's columns are cut within a block
};

Result<TensorView> bytes_of(const Checkpoint& from, const std::string& name, const std::vector<int64_t>& shape) {
    PB_TRY(TensorView view, from.tensor(name));
    if (view.encoding != Encoding::kU8 || view.shape != shape)
        return invalid("tensor '" + name + "' is " + facts_of(view.encoding).name + " " + shape_text(view.shape) +
                       " but the model needs u8 " + shape_text(shape) + " (is config.json of another model?)");
    return view;
}

}  // namespace

Result<std::shared_ptr<const CodeSource>> mxfp4_codes(const Checkpoint& from, const std::string& module,
                                                      const Piece& piece) {
    const int64_t rows = piece.shape[0], cols = piece.shape[1];
    if (cols % kBlock != 0)
        return invalid("'" + module + "' is MXFP4, but its " + std::to_string(cols) + " columns are no multiple of " +
                       std::to_string(kBlock));
    const auto cut_by = [&](int64_t n) { return piece.col % n == 0 && piece.cols % n == 0; };
    if (!cut_by(kBlock / 2))
        return unsupported("'" + module + "' is MXFP4, whose columns can be cut at multiples of " +
                           std::to_string(kBlock / 2) + ", not into " + std::to_string(piece.cols) + " from " +
                           std::to_string(piece.col) + " on (choose a smaller tensor_parallel_size)");
    PB_TRY(const TensorView blocks,
           bytes_of(from, module + ".weight_blocks", {rows, cols / kBlock, kBlock / 2}));
    PB_TRY(const TensorView scales, bytes_of(from, module + ".weight_scales", {rows, cols / kBlock}));
    const auto group = static_cast<uint32_t>(cut_by(kBlock) ? kBlock : kBlock / 2);
    return std::shared_ptr<const CodeSource>(std::make_shared<Mxfp4Codes>(piece, blocks, scales, group));
}

}  // namespace patchbay::weights
