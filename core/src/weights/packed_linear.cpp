#include "weights/packed_linear.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/refusals.hpp"
#include "weights/code_sources.hpp"

namespace patchbay::weights {
namespace {

constexpr int64_t kAwqPlaces[] = {0, 4, 1, 5, 2, 6, 3, 7};  // of eight numbers in a word, from the low bits on

uint32_t word_at(const TensorView& view, int64_t index) {
    uint32_t word;
    std::memcpy(&word, view.data + index * 4, sizeof word);
    return word;
}

struct Tensors {
    TensorView weights;          // i32: AWQ's (in, out / 8), GPTQ's (in / 8, out), or in / 4 of 8 bits
    TensorView zeros;            // i32 (groups, out / 8), or out / 4
    TensorView scales;           // real (groups, out)
    std::vector<int32_t> order;  // of the columns by their groups; empty: as they are
};

class PackedCodes final : public CodeSource {
  public:
    PackedCodes(const PackedFormat& format, const Piece& piece, Tensors tensors, int64_t group_size, uint32_t group)
        : format_(format), piece_(piece), tensors_(std::move(tensors)), group_size_(group_size),
          per_word_(32 / format.bits), half_(1 << (format.bits - 1)) {
        form_ = {format.bits == 4 ? PB_I4 : PB_I8, group, CodeForm::Offsets::kNone};
        const int64_t first = piece.col / group_size, last = (piece.col + piece.cols - 1) / group_size;
        for (int64_t g = first; g <= last; ++g)
            for (const int64_t row : rows_of(0, piece.rows))
                if (zero_of(g, row) != half_) form_.offsets = CodeForm::Offsets::kSome;
    }

    CodeForm form() const override { return form_; }
    std::span<const int32_t> order() const override { return tensors_.order; }

    void unpack(int64_t begin, int64_t end, CodeRows& out) const override {
        const std::vector<int64_t> rows = rows_of(begin, end);
        const auto count = static_cast<int64_t>(rows.size());
        for (int64_t c = 0; c < piece_.cols; ++c) {
            const auto stored = tensors_.order.empty() ? piece_.col + c : tensors_.order[static_cast<size_t>(c)];
            for (int64_t i = 0; i < count; ++i)
                out.codes_of(i)[c] = static_cast<int8_t>(number_of(stored, rows[static_cast<size_t>(i)]) - half_);
        }
        for (int64_t g = 0; g < out.groups; ++g) {
            const int64_t stored = (piece_.col + g * out.group) / group_size_, outs = tensors_.scales.shape[1];
            for (int64_t i = 0; i < count; ++i) {
                const int64_t row = rows[static_cast<size_t>(i)];
                float scale;
                decode(tensors_.scales.encoding, tensors_.scales.data, stored * outs + row, 1, PB_F32,
                       reinterpret_cast<std::byte*>(&scale));
                out.scales_of(i)[g] = scale;
                out.offsets_of(i)[g] = static_cast<float>(half_ - zero_of(stored, row)) * scale;
            }
        }
    }

  private:
    std::vector<int64_t> rows_of(int64_t begin, int64_t end) const { // of the piece's rows: those of the tensors
        std::vector<int64_t> out;
        for (int64_t r = begin; r < end; ++r) out.push_back(piece_.order(piece_.row + r));
        return out;
    }
    int field(uint32_t word, int64_t place) const {
        return static_cast<int>(word >> (place * format_.bits) & ((1u << format_.bits) - 1));
    }
    int number_of(int64_t in, int64_t out) const {
        if (format_.method == PackedFormat::Method::kAwq)
            return field(word_at(tensors_.weights, in * tensors_.weights.shape[1] + out / 8), kAwqPlaces[out % 8]);
        return field(word_at(tensors_.weights, in / per_word_ * tensors_.weights.shape[1] + out), in % per_word_);
    }
    int zero_of(int64_t group, int64_t out) const {
        const uint32_t word = word_at(tensors_.zeros, group * tensors_.zeros.shape[1] + out / per_word_);
        const int64_t place = out % per_word_;
        const int stored = field(word, format_.method == PackedFormat::Method::kAwq ? kAwqPlaces[place] : place);
        return (stored + static_cast<int>(format_.zero_short)) & ((1 << format_.bits) - 1);
    }

    PackedFormat format_;
    Piece piece_;
    Tensors tensors_;
    int64_t group_size_;  // columns that share a scale in the checkpoint
    int64_t per_word_;
    int half_;            // what is taken from a number to make a code with a sign
    CodeForm form_;
};

enum class Numbers { kWords, kBytes, kReal };

Result<TensorView> tensor_of(const Checkpoint& from, const std::string& name, Numbers numbers,
                             const std::vector<int64_t>& shape) {
    PB_TRY(TensorView view, from.tensor(name));
    const bool fits = numbers == Numbers::kWords   ? view.encoding == Encoding::kI32
                      : numbers == Numbers::kBytes ? view.encoding == Encoding::kI8
                                                   : is_real(view.encoding) && !in_blocks(view.encoding);
    const char* const wanted = numbers == Numbers::kWords   ? "i32 "
                               : numbers == Numbers::kBytes ? "i8 "
                                                            : "real numbers ";
    if (!fits || view.shape != shape)
        return invalid("tensor '" + name + "' is " + facts_of(view.encoding).name + " " + shape_text(view.shape) +
                       " but the model needs " + wanted + shape_text(shape) +
                       " (is quantization_config of another model?)");
    return view;
}

// Columns by their groups, those of a group in order; empty: they are so already.
Result<std::vector<int32_t>> order_of(const TensorView& groups, const std::string& name, int64_t group_size) {
    const auto cols = static_cast<size_t>(groups.shape[0]);
    std::vector<int32_t> group(cols), order(cols);
    std::memcpy(group.data(), groups.data, cols * sizeof(int32_t));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return group[static_cast<size_t>(a)] < group[static_cast<size_t>(b)];
    });
    for (size_t c = 0; c < cols; ++c) {
        const int64_t expected = static_cast<int64_t>(c) / group_size;
        if (group[static_cast<size_t>(order[c])] == expected) continue;
        return invalid("tensor '" + name + "' does not deal the columns in groups of " + std::to_string(group_size) +
                       ": group " + std::to_string(expected) + " has more or fewer");
    }
    if (std::is_sorted(order.begin(), order.end())) order.clear();
    return order;
}

// compressed-tensors': a row after another, in words from the low bits on, or a code in each byte.
class CompressedCodes final : public CodeSource {
  public:
    struct Parts {
        TensorView weights;               // i32 (out, ⌈in / per word⌉), or i8 (out, in)
        TensorView scales;                // real (out, groups)
        std::optional<TensorView> zeros;  // i32 (⌈out / per word⌉, groups), or i8 (out, groups)
    };
    CompressedCodes(const PackedFormat& format, const Piece& piece, Parts parts, int64_t group_size, uint32_t group)
        : bits_(format.bits), piece_(piece), parts_(std::move(parts)), group_size_(group_size),
          groups_(parts_.scales.shape[1]), half_(1 << (format.bits - 1)) {
        form_ = {format.bits == 4 ? PB_I4 : PB_I8, group,
                 parts_.zeros ? CodeForm::Offsets::kSome : CodeForm::Offsets::kNone};
    }

    CodeForm form() const override { return form_; }

    void unpack(int64_t begin, int64_t end, CodeRows& out) const override {
        std::vector<float> scales(static_cast<size_t>(groups_));
        for (int64_t r = begin; r < end; ++r) {
            const int64_t row = piece_.order(piece_.row + r);
            for (int64_t c = 0; c < piece_.cols; ++c)
                out.codes_of(r - begin)[c] = static_cast<int8_t>(code_at(parts_.weights, row, piece_.col + c));
            decode(parts_.scales.encoding, parts_.scales.data, row * groups_, groups_, PB_F32,
                   reinterpret_cast<std::byte*>(scales.data()));
            for (int64_t g = 0; g < out.groups; ++g) {
                const int64_t stored = (piece_.col + g * out.group) / group_size_;
                const float scale = scales[static_cast<size_t>(stored)];
                out.scales_of(r - begin)[g] = scale;
                out.offsets_of(r - begin)[g] = parts_.zeros ? static_cast<float>(-zero_of(row, stored)) * scale : 0.0f;
            }
        }
    }

  private:
    int field(const TensorView& view, int64_t word, int64_t place) const {
        return static_cast<int>(word_at(view, word) >> (place * bits_) & ((1u << bits_) - 1)) - half_;
    }
    int code_at(const TensorView& view, int64_t row, int64_t col) const {
        const int64_t width = view.shape[1], per_word = 32 / bits_;
        if (view.encoding == Encoding::kI8) return std::to_integer<int8_t>(view.data[row * width + col]);
        return field(view, row * width + col / per_word, col % per_word);
    }
    int zero_of(int64_t row, int64_t group) const {
        const int64_t per_word = 32 / bits_;
        if (parts_.zeros->encoding == Encoding::kI8) return code_at(*parts_.zeros, row, group);
        return field(*parts_.zeros, row / per_word * groups_ + group, row % per_word);
    }

    uint32_t bits_;
    Piece piece_;
    Parts parts_;
    int64_t group_size_, groups_;
    int half_;  // what is taken from a number to make a code with a sign
    CodeForm form_;
};

// `group_size`: columns; of a matrix (rows, cols).
Result<CompressedCodes::Parts> compressed_parts(const PackedFormat& format, const Checkpoint& from,
                                                const std::string& module, int64_t rows, int64_t cols,
                                                int64_t group_size) {
    const int64_t per_word = 32 / format.bits, groups = (cols + group_size - 1) / group_size;
    CompressedCodes::Parts out;
    if (from.has(module + ".weight_g_idx"))
        return unsupported("'" + module +
                           "' has its columns in an order of their own (weight_g_idx), which is not supported");
    const bool in_words = from.has(module + ".weight_packed");
    if (in_words) {
        PB_TRY(out.weights, tensor_of(from, module + ".weight_packed", Numbers::kWords,
                                      {rows, (cols + per_word - 1) / per_word}));
    } else {
        PB_TRY(out.weights, tensor_of(from, module + ".weight", Numbers::kBytes, {rows, cols}));
    }
    PB_TRY(out.scales, tensor_of(from, module + ".weight_scale", Numbers::kReal, {rows, groups}));
    const std::string zeros = module + ".weight_zero_point";
    if (!from.has(zeros)) return out;
    PB_TRY(const TensorView view, from.tensor(zeros));
    if (view.encoding == Encoding::kI8) {
        PB_TRY(out.zeros, tensor_of(from, zeros, Numbers::kBytes, {rows, groups}));
    } else {
        PB_TRY(out.zeros, tensor_of(from, zeros, Numbers::kWords, {(rows + per_word - 1) / per_word, groups}));
    }
    return out;
}

}  // namespace

const char* PackedFormat::name() const {
    switch (method) {
        case Method::kAwq: return "awq";
        case Method::kGptq: return "gptq";
        case Method::kCompressed: return "compressed-tensors";
        case Method::kFp8: return "fp8";
        case Method::kMxfp4: return "mxfp4";
    }
    return "";
}

Result<std::shared_ptr<const BlockScales>> fp8_scales(const std::optional<PackedFormat>& format, const Checkpoint& from,
                                                      const std::string& name, const std::vector<int64_t>& shape) {
    const int64_t rows = shape[0], cols = shape.back();
    std::string at = name + "_scale_inv";
    if (!from.has(at)) at = name + "_scale";
    if (!from.has(at))
        return invalid("tensor '" + name + "' is F8_E4M3, and the checkpoint has neither '" + name +
                       "_scale_inv' nor '" + name + "_scale'");
    PB_TRY(const TensorView view, from.tensor(at));
    int64_t count = 1;
    for (const int64_t n : view.shape) count *= n;
    auto out = std::make_shared<BlockScales>();
    const bool blocks = format && format->block_rows > 0;
    out->block_rows = blocks ? std::min(format->block_rows, rows) : count == rows ? 1 : rows;
    out->block_cols = blocks ? std::min(format->block_cols, cols) : cols;
    out->across = (cols + out->block_cols - 1) / out->block_cols;
    const int64_t down = (rows + out->block_rows - 1) / out->block_rows;
    const bool lies_so = view.shape == std::vector{down, out->across} || (!blocks && count == down);
    if (!is_real(view.encoding) || in_blocks(view.encoding) || !lies_so)
        return invalid("tensor '" + at + "' is " + facts_of(view.encoding).name + " " + shape_text(view.shape) +
                       ", expected real numbers " + shape_text({down, out->across}) + " for '" + name + "' " +
                       shape_text(shape) + " (is quantization_config of another model?)");
    out->values.resize(static_cast<size_t>(count));
    decode(view.encoding, view.data, 0, count, PB_F32, reinterpret_cast<std::byte*>(out->values.data()));
    if (!std::ranges::all_of(out->values, [](float x) { return std::isfinite(x); }))
        return invalid("tensor '" + at + "' holds numbers that are not finite (is the file damaged?)");
    return std::shared_ptr<const BlockScales>(std::move(out));
}

Result<std::shared_ptr<const CodeSource>> packed_codes(const PackedFormat& format, const Checkpoint& from,
                                                       const std::string& module, const Piece& piece) {
    if (format.method == PackedFormat::Method::kMxfp4) return mxfp4_codes(from, module, piece);
    const int64_t rows = piece.shape[0], cols = piece.shape[1], per_word = 32 / format.bits;
    const bool awq = format.method == PackedFormat::Method::kAwq;
    const int64_t group_size = format.group_size < 0 ? cols : std::min(format.group_size, cols);
    const int64_t groups = (cols + group_size - 1) / group_size;
    const bool compressed = format.method == PackedFormat::Method::kCompressed;
    if (!compressed && (rows % per_word != 0 || (!awq && cols % per_word != 0)))
        return invalid("'" + module + "' is packed by " + format.name() + ", but its shape " + shape_text(piece.shape) +
                       " is not a multiple of " + std::to_string(per_word));
    const uint32_t group = format.device_group(cols);
    const bool whole = groups == 1 || (piece.col % group_size == 0 &&
                                       (piece.cols % group_size == 0 || piece.col + piece.cols == cols));
    if (group < 16)
        return invalid("'" + module + "' has groups of " + std::to_string(group_size) +
                       " columns, expected a multiple of 16");
    if (!whole)
        return unsupported("'" + module + "' cannot be cut within its groups of " + std::to_string(group_size) +
                           " columns");
    if (compressed) {
        PB_TRY(auto parts, compressed_parts(format, from, module, rows, cols, group_size));
        return std::shared_ptr<const CodeSource>(
            std::make_shared<CompressedCodes>(format, piece, std::move(parts), group_size, group));
    }
    Tensors tensors;
    PB_TRY(tensors.weights, tensor_of(from, module + ".qweight", Numbers::kWords,
                                      awq ? std::vector{cols, rows / per_word} : std::vector{cols / per_word, rows}));
    PB_TRY(tensors.zeros, tensor_of(from, module + ".qzeros", Numbers::kWords, {groups, rows / per_word}));
    PB_TRY(tensors.scales, tensor_of(from, module + ".scales", Numbers::kReal, {groups, rows}));
    if (format.columns == PackedFormat::Columns::kByGroup) {
        PB_TRY(const TensorView by, tensor_of(from, module + ".g_idx", Numbers::kWords, {cols}));
        PB_TRY(tensors.order, order_of(by, module + ".g_idx", group_size));
        if (!tensors.order.empty() && piece.cols != cols)
            return unsupported("'" + module + "' has its columns in an order of their own (desc_act): " +
                               "they cannot be split over ranks");
    }
    return std::shared_ptr<const CodeSource>(
        std::make_shared<PackedCodes>(format, piece, std::move(tensors), group_size, group));
}

}  // namespace patchbay::weights
