#include "weights/loader.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "patchbay/sdk/tensor.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

namespace {

template <size_t n>
std::string text_of(const char (&field)[n]) { // a plugin's field: perhaps not terminated
    return std::string(field, strnlen(field, n));
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string out = "(";
    for (const int64_t n : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(n);
    return out + ")";
}

struct Span {
    int64_t begin, count;
};

// This rank's share of `total`, dealt in whole units.
Result<Span> deal(int64_t total, int64_t unit, uint32_t rank, uint32_t size, const std::string& name,
                  const char* axis) {
    unit = std::max<int64_t>(unit, 1);
    if (total % unit != 0 || (total / unit) % size != 0)
        return fail("cannot deal the " + std::to_string(total) + " " + axis + " of '" + name + "' to " +
                    std::to_string(size) + " ranks in units of " + std::to_string(unit) +
                    " (choose a tensor_parallel_size that divides " + std::to_string(total / unit) + ")");
    return Span{total / size * rank, total / size};
}

Result<> check_spec(const pb_weight_spec& spec, pb_dtype wanted, uint32_t rank, uint32_t size) {
    if (wanted != PB_F32 && wanted != PB_BF16)
        return fail(std::string("weights are loaded as f32 or bf16, not as ") + dtype_name(wanted));
    if (size == 0 || rank >= size)
        return fail("rank " + std::to_string(rank) + " of " + std::to_string(size) + " does not exist");
    if (spec.same_as >= 0 || spec.part_count == 0)
        return fail("this weight is not in a checkpoint: the model shares or computes it");
    if (spec.part_count > PB_MAX_FUSED)
        return fail("the model fuses " + std::to_string(spec.part_count) + " tensors, more than " +
                    std::to_string(PB_MAX_FUSED));
    constexpr int64_t kMostElements = int64_t{1} << 40;
    for (uint32_t i = 0; i < spec.part_count; ++i) {
        const int64_t rows = spec.role == PB_WEIGHT_VECTOR ? 1 : spec.parts[i].rows;
        if (rows < 1 || spec.cols < 1 || rows > kMostElements / spec.cols)
            return fail("the model asks for '" + text_of(spec.parts[i].name) + "' of shape " +
                        shape_text({rows, spec.cols}));
        const auto& [first, stored] = std::pair(spec.parts[i].first_row, spec.parts[i].stored_rows);
        if (stored != 0 && (stored > kMostElements / spec.cols || first < 0 || first > stored - rows))
            return fail("the model asks for " + std::to_string(rows) + " rows from " + std::to_string(first) +
                        " on of '" + text_of(spec.parts[i].name) + "', which has " + std::to_string(stored));
    }
    return {};
}

}  // namespace

bool LoadMemory::at_least(size_t bytes) {
    if (bytes <= bytes_) return true;
    memory_.reset(); // the old and the new need not be there together
    memory_.reset(new (std::nothrow) std::byte[bytes]);
    bytes_ = memory_ ? bytes : 0;
    return memory_ != nullptr;
}

Result<WeightSource> WeightSource::from_folder(const std::filesystem::path& folder) {
    PB_TRY(std::shared_ptr<const Checkpoint> checkpoint, Checkpoint::open(folder));
    return from_checkpoint(std::move(checkpoint));
}

WeightSource WeightSource::from_checkpoint(std::shared_ptr<const Checkpoint> checkpoint) {
    WeightSource out;
    out.checkpoint_ = std::move(checkpoint);
    return out;
}

WeightSource WeightSource::dummy(uint64_t seed) {
    WeightSource out;
    out.seed_ = seed;
    return out;
}

// A checkpoint of a bare model, without its head, names tensors without their first word: "wte.weight" for
// "transformer.wte.weight".
std::string WeightSource::stored_name(const std::string& name) const {
    if (checkpoint_->has(name)) return name;
    const std::string bare = name.substr(name.find('.') + 1);
    return bare.find('.') != bare.npos && checkpoint_->has(bare) ? bare : name;
}

Result<> WeightSource::check(const Piece& piece) const {
    if (!checkpoint_) return {};
    PB_TRY(const TensorView view, checkpoint_->tensor(stored_name(piece.name)));
    std::vector<int64_t> shape = piece.shape;
    if (piece.stored == Piece::Stored::kTransposed) std::reverse(shape.begin(), shape.end());
    if (view.shape != shape)
        return fail("tensor '" + piece.name + "' is " + shape_text(view.shape) + " but the model needs " +
                    shape_text(shape) + " (is config.json of another model?)");
    if (!is_real(view.encoding))
        return fail("tensor '" + piece.name + "' holds " + facts_of(view.encoding).name +
                    ", but a weight is f32, bf16 or f16");
    return {};
}

// Zeros, a tensor's share, or made up.
void WeightSource::read(const Piece& piece, pb_dtype wanted, std::byte* target) const {
    if (piece.name.empty()) std::memset(target, 0, static_cast<size_t>(piece.count() * dtype_bytes(wanted)));
    else if (checkpoint_) read_piece(piece, *checkpoint_->tensor(stored_name(piece.name)), wanted, target, pool_);
    else make_piece(piece, seed_, wanted, target, pool_);
}

Result<LoadedWeight> WeightSource::load(const pb_weight_spec& spec, pb_dtype wanted, uint32_t rank, uint32_t size,
                                        LoadedWeight reuse) const {
    PB_CHECK(check_spec(spec, wanted, rank, size));
    const bool vector = spec.role == PB_WEIGHT_VECTOR;
    if (spec.offset != 0) wanted = PB_F32; // a sum that bf16 would round
    LoadedWeight out{wanted, 0, 0, {}, {}, std::move(reuse.memory)};
    std::vector<Piece> pieces, biases; // a bias of no name: zeros
    bool has_bias = false;
    for (uint32_t i = 0; i < spec.part_count; ++i) {
        const pb_weight_part& part = spec.parts[i];
        const std::string name = text_of(part.name), bias = text_of(part.bias);
        const int64_t part_rows = vector ? 1 : part.rows;
        Span rows{0, part_rows}, cols{0, spec.cols};
        if (spec.shard == PB_SHARD_ROWS) {
            PB_TRY(rows, deal(part_rows, part.shard_unit, rank, size, name, "rows"));
        } else if (spec.shard == PB_SHARD_COLS) {
            PB_TRY(cols, deal(spec.cols, part.shard_unit, rank, size, name, "columns"));
        }
        if (i > 0 && cols.count != out.cols)
            return fail("the parts fused with '" + name + "' are cut into different numbers of columns");
        const int64_t stored_rows = part.stored_rows ? part.stored_rows : part_rows;
        if (part.stored_rows) rows.begin += part.first_row;
        const std::vector<int64_t> shape =
            vector ? std::vector<int64_t>{spec.cols} : std::vector<int64_t>{stored_rows, spec.cols};
        pieces.push_back({name, shape, rows.begin, rows.count, cols.begin, cols.count});
        if (part.transposed && !vector) pieces.back().stored = Piece::Stored::kTransposed;
        PB_CHECK(check(pieces.back()));
        biases.push_back({bias, {stored_rows}, 0, 1, rows.begin, rows.count, Piece::Holds::kBias});
        if (!bias.empty()) PB_CHECK(check(biases.back()));
        has_bias = has_bias || !bias.empty();
        out.rows += rows.count;
        out.cols = cols.count;
    }
    if (spec.shard == PB_SHARD_COLS && rank != 0) has_bias = false;
    const auto bytes = static_cast<size_t>(out.rows * out.cols * dtype_bytes(wanted));
    const std::byte* in_place = nullptr;
    if (checkpoint_ && pieces.size() == 1 && spec.offset == 0)
        in_place = piece_in_place(pieces[0], *checkpoint_->tensor(stored_name(pieces[0].name)), wanted);
    const size_t bias_bytes = has_bias ? static_cast<size_t>(out.rows * dtype_bytes(wanted)) : 0;
    const size_t copied = in_place ? 0 : bytes;
    if (!out.memory.at_least(copied + bias_bytes))
        return fail("no memory for '" + pieces[0].name + "' of shape " + shape_text({out.rows, out.cols}) + " in " +
                    dtype_name(wanted));
    std::byte* const data = out.memory.data();
    std::byte* const bias = data + copied;
    out.data = {in_place ? in_place : data, bytes};
    out.bias = {bias, bias_bytes};
    int64_t row = 0;
    for (size_t i = 0; i < pieces.size(); row += pieces[i].rows, ++i) {
        if (!in_place) read(pieces[i], wanted, data + row * out.cols * dtype_bytes(wanted));
        if (has_bias) read(biases[i], wanted, bias + row * dtype_bytes(wanted));
    }
    if (spec.offset != 0 && checkpoint_) // dummy vectors are near 1 as they are
        for (int64_t i = 0; i < out.rows * out.cols; ++i) {
            float value;
            std::memcpy(&value, data + i * 4, 4);
            value += spec.offset;
            std::memcpy(data + i * 4, &value, 4);
        }
    return out;
}

Result<pb_dtype> WeightSource::native_dtype(const FlatConfig& config) const {
    if (checkpoint_) {
        uint64_t most = 0;
        std::optional<Encoding> largest;
        for (const std::string& name : checkpoint_->names()) {
            const auto view = checkpoint_->tensor(name);
            if (!view || !is_real(view->encoding) || (largest && view->bytes <= most)) continue;
            most = view->bytes;
            largest = view->encoding;
        }
        if (!largest) return fail("the checkpoint holds no f32, bf16 or f16 tensor");
        return *largest == Encoding::kBf16 || in_blocks(*largest) ? PB_BF16 : PB_F32;
    }
    for (const char* key : {"dtype", "torch_dtype"})
        if (const auto at = config.find(key); at != config.end() && at->second != "null")
            return at->second == "bfloat16" ? PB_BF16 : PB_F32;
    return PB_F32;
}

}  // namespace patchbay::weights
