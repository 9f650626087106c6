#include "weights/loader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>

#include "patchbay/sdk/tensor.hpp"
#include "weights/block_codes.hpp"
#include "weights/fp8_codes.hpp"
#include "weights/piece.hpp"
#include "weights/rounded_codes.hpp"

namespace patchbay::weights {

struct Share {  // of a weight
    std::vector<Piece> pieces, biases;  // of each part; a bias of no name: zeros
    CodeSources packed;                 // likewise; null: it is not an AWQ or GPTQ linear
    bool has_bias = false;
    int64_t rows = 0, cols = 0;
};

namespace {

template <size_t n>
std::string text_of(const char (&field)[n]) { // a plugin's field: perhaps not terminated
    return std::string(field, strnlen(field, n));
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

Result<> check_form(const WeightForm& form) {
    if (form.dtype != PB_F32 && form.dtype != PB_BF16)
        return fail(std::string("weights are loaded as f32 or bf16, not as ") + dtype_name(form.dtype));
    if (form.group != 32 && form.group != 128 && form.group != WeightForm::kWholeRows)
        return fail("weights are quantised in groups of 32 or 128 columns, not of " + std::to_string(form.group));
    return {};
}

Result<> check_order(const pb_weight_spec& spec, uint32_t index) {
    const pb_row_order& order = spec.orders[index];
    const pb_weight_part& part = spec.parts[index];
    if (order.unit == 0 && order.stride == 0 && order.pairs == 0) return {};
    const auto refuse = [&](const std::string& why) {
        return fail("the model takes the rows of '" + text_of(part.name) + "' in an order of their own, " + why);
    };
    if (spec.role == PB_WEIGHT_VECTOR || part.transposed) return refuse("and it is a vector or transposed");
    if (order.pairs < 0 || order.pairs % 2 != 0 || (order.pairs && part.rows % order.pairs != 0))
        return refuse("in pairs of " + std::to_string(order.pairs) + " rows, of " + std::to_string(part.rows));
    if (order.unit < 0 || (order.unit == 0) != (order.stride == 0) || order.stride < order.unit)
        return refuse(std::to_string(order.unit) + " of every " + std::to_string(order.stride));
    const int64_t last = part.rows - 1, stored = part.stored_rows ? part.stored_rows : part.rows;
    if (order.unit && (last / order.unit > stored / order.stride ||
                       part.first_row + last / order.unit * order.stride + last % order.unit >= stored))
        return refuse("which reach past its " + std::to_string(stored));
    return {};
}

Result<> check_spec(const pb_weight_spec& spec, uint32_t rank, uint32_t size) {
    if (size == 0 || rank >= size)
        return fail("rank " + std::to_string(rank) + " of " + std::to_string(size) + " does not exist");
    if (spec.tied_to > 0 || spec.part_count == 0)
        return fail("this weight is not in a checkpoint: the model shares or computes it");
    if (spec.part_count > PB_MAX_FUSED)
        return fail("the model fuses " + std::to_string(spec.part_count) + " tensors, more than " +
                    std::to_string(PB_MAX_FUSED));
    constexpr int64_t kMaxElements = int64_t{1} << 40;
    for (uint32_t i = 0; i < spec.part_count; ++i) {
        const int64_t rows = spec.role == PB_WEIGHT_VECTOR ? 1 : spec.parts[i].rows;
        if (rows < 1 || spec.cols < 1 || rows > kMaxElements / spec.cols)
            return fail("the model asks for '" + text_of(spec.parts[i].name) + "' of shape " +
                        shape_text({rows, spec.cols}));
        const auto& [first, stored] = std::pair(spec.parts[i].first_row, spec.parts[i].stored_rows);
        const bool vector = spec.role == PB_WEIGHT_VECTOR; // then of numbers, not of rows
        const int64_t taken = vector ? spec.cols : rows;
        if (stored != 0 && (stored > kMaxElements / spec.cols || first < 0 || first > stored - taken))
            return fail("the model asks for " + std::to_string(taken) + (vector ? " numbers" : " rows") + " from " +
                        std::to_string(first) + " on of '" + text_of(spec.parts[i].name) + "', which has " +
                        std::to_string(stored));
        PB_CHECK(check_order(spec, i));
    }
    return {};
}

// To f32 numbers, which may be unaligned.
void add(float sum, std::byte* numbers, int64_t count) {
    for (; count > 0; --count, numbers += sizeof(float)) {
        float value;
        std::memcpy(&value, numbers, sizeof value);
        value += sum;
        std::memcpy(numbers, &value, sizeof value);
    }
}

Failure no_memory(const Share& share, pb_dtype dtype) {
    return fail("no memory for '" + share.pieces[0].name + "' of shape " + shape_text({share.rows, share.cols}) +
                " in " + dtype_name(dtype));
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
    PB_TRY(std::shared_ptr<const Checkpoint> checkpoint,
           refused_as(StatusCode::kInvalid, Checkpoint::open(folder)));
    std::error_code error;
    if (is_gguf(folder) || !std::filesystem::exists(folder / "config.json", error)) return from_checkpoint(checkpoint);
    PB_TRY(const FlatConfig config, read_model_config(folder));
    PB_TRY(const auto packed, packed_format(config));
    return from_checkpoint(std::move(checkpoint), packed);
}

WeightSource WeightSource::from_checkpoint(std::shared_ptr<const Checkpoint> checkpoint,
                                           std::optional<PackedFormat> packed) {
    WeightSource out;
    out.checkpoint_ = std::move(checkpoint);
    out.packed_ = packed;
    return out;
}

WeightSource WeightSource::dummy(uint64_t seed) {
    WeightSource out;
    out.seed_ = seed;
    return out;
}

Result<WeightSource> WeightSource::shapes(const FlatConfig& config) {
    WeightSource out;
    out.numbers_ = Numbers::kNone;
    PB_TRY(out.packed_, packed_format(config));
    if (const auto vocab = config.find("vocab_size"); vocab != config.end())
        std::from_chars(vocab->second.data(), vocab->second.data() + vocab->second.size(), out.vocab_size_);
    return out;
}

// A checkpoint of a bare model, without its head, names tensors without their first word: "wte.weight" for
// "transformer.wte.weight".
std::string WeightSource::stored_name(const std::string& name) const {
    if (checkpoint_->has(name)) return name;
    const std::string bare = name.substr(name.find('.') + 1);
    return bare.find('.') != bare.npos && checkpoint_->has(bare) ? bare : name;
}

// "model.layers.0.mlp.up_proj" for the weight of that name, where the checkpoint has it packed.
std::optional<std::string> WeightSource::packed_module(const std::string& name) const {
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

Result<> WeightSource::check(const Piece& piece) const {
    if (!checkpoint_) return {};
    PB_TRY(const TensorView view, checkpoint_->tensor(stored_name(piece.name)));
    std::vector<int64_t> shape = piece.shape;
    if (piece.stored == Piece::Stored::kTransposed) std::reverse(shape.begin(), shape.end());
    // A convolution's taps, (channels, 1, taps), are a vector here.
    const bool taps = shape.size() == 1 && view.shape.size() == 3 && view.shape[1] == 1 &&
                      view.shape[0] * view.shape[2] == shape[0];
    if (view.shape != shape && !taps)
        return fail("tensor '" + piece.name + "' is " + shape_text(view.shape) + " but the model needs " +
                    shape_text(shape) + " (is config.json of another model?)");
    if (!is_real(view.encoding))
        return fail("tensor '" + piece.name + "' holds " + facts_of(view.encoding).name +
                    ", but a weight is f32, bf16 or f16");
    return {};
}

// Of an fp8 tensor.
Result<> WeightSource::find_scales(Piece& piece) const {
    if (!checkpoint_) return {};
    PB_TRY(const TensorView view, checkpoint_->tensor(stored_name(piece.name)));
    if (view.encoding != Encoding::kF8_E4M3) return {};
    if (piece.stored == Piece::Stored::kTransposed)
        return fail("tensor '" + piece.name + "' is F8_E4M3 and stored transposed, which is not supported");
    PB_TRY(piece.scales, fp8_scales(packed_, *checkpoint_, stored_name(piece.name), piece.shape));
    return {};
}

// Zeros, a tensor's share, or made up.
void WeightSource::read(const Piece& piece, pb_dtype wanted, std::byte* target, ThreadPool* pool) const {
    if (piece.name.empty()) std::memset(target, 0, static_cast<size_t>(piece.count() * dtype_bytes(wanted)));
    else if (checkpoint_) read_piece(piece, *checkpoint_->tensor(stored_name(piece.name)), wanted, target, pool);
    else make_piece(piece, seed_, wanted, target, pool);
}

Result<Share> WeightSource::share(const pb_weight_spec& spec, uint32_t rank, uint32_t size) const {
    PB_CHECK(check_spec(spec, rank, size));
    const bool vector = spec.role == PB_WEIGHT_VECTOR;
    Share out;
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
        const int64_t stored_rows = part.stored_rows && !vector ? part.stored_rows : part_rows;
        if (part.stored_rows) (vector ? cols : rows).begin += part.first_row;
        const int64_t length = part.stored_rows ? part.stored_rows : spec.cols; // of a vector
        const std::vector<int64_t> shape =
            vector ? std::vector<int64_t>{length} : std::vector<int64_t>{stored_rows, spec.cols};
        out.pieces.push_back({name, shape, rows.begin, rows.count, cols.begin, cols.count});
        if (part.transposed && !vector) out.pieces.back().stored = Piece::Stored::kTransposed;
        const RowOrder order{part.stored_rows ? part.first_row : 0, spec.orders[i].unit, spec.orders[i].stride,
                             spec.orders[i].pairs};
        if (!vector) out.pieces.back().order = order;
        out.packed.emplace_back();
        if (const auto module = vector ? std::nullopt : packed_module(name)) {
            if (!packed_)
                return fail("there is '" + *module + ".qweight' in place of '" + name +
                            "', but config.json has no quantization_config that says how it is packed");
            if (!order.is_plain() && !packed_->takes_row_orders())
                return fail("'" + *module + "' is " + packed_->name() + ", and the model takes its rows in an order " +
                            "of their own, which is not supported (take real weights)");
            PB_TRY(out.packed.back(), packed_codes(*packed_, *checkpoint_, *module, out.pieces.back()));
        } else {
            PB_CHECK(check(out.pieces.back()));
            PB_CHECK(find_scales(out.pieces.back()));
        }
        out.biases.push_back({bias, {stored_rows}, 0, 1, rows.begin, rows.count, Piece::Holds::kBias});
        if (!vector) out.biases.back().order = order;
        if (!bias.empty()) PB_CHECK(check(out.biases.back()));
        out.has_bias = out.has_bias || !bias.empty();
        out.rows += rows.count;
        out.cols = cols.count;
    }
    if (spec.shard == PB_SHARD_COLS && rank != 0) out.has_bias = false;
    return out;
}

// Where the codes of each piece come from; empty: the weight is real.
Result<CodeSources> WeightSource::code_sources(const Share& share, const WeightForm& form) const {
    CodeSources out;
    if (form.quantization == Quantization::kNone) return out;
    const CodeForm rounded{form.quantization == Quantization::kInt4 ? PB_I4 : PB_I8, form.stored_group()};
    const auto scales =
        form.group == WeightForm::kWholeRows ? RoundedCodes::Scales::kOfRows : RoundedCodes::Scales::kOfGroups;
    for (size_t i = 0; i < share.pieces.size(); ++i) {
        const Piece& piece = share.pieces[i];
        const auto view = checkpoint_ && !share.packed[i] ? checkpoint_->tensor(stored_name(piece.name))
                                                          : Result<TensorView>(fail(""));
        const bool real =
            !share.packed[i] && (!view || !in_blocks(view->encoding) || view->encoding == Encoding::kF8_E4M3);
        if (form.quantization == Quantization::kAsStored) {
            if (share.packed[i] || !view) out.push_back(share.packed[i]);
            else out.push_back(piece.scales ? fp8_codes(piece, *view) : block_codes(piece, *view));
        } else if (real) {
            const auto read_some = [this](const Piece& some, float* target) {
                read(some, PB_F32, reinterpret_cast<std::byte*>(target), nullptr);
            };
            out.push_back(std::make_shared<RoundedCodes>(piece, rounded, scales, read_some));
        } else {
            return fail("'" + piece.name + "' is quantised already (" +
                        (view ? facts_of(view->encoding).name : packed_->name()) + "), and quantization: " +
                        (rounded.dtype == PB_I4 ? "int4" : "int8") +
                        " rounds real weights (leave it at auto, or set none to decode them)");
        }
        // A weight has one order of columns and one kind of numbers, and is real where a part is.
        if (!out.back() || !std::ranges::equal(out.back()->order(), out.front()->order()) ||
            (out.back()->form().dtype == PB_FP8) != (out.front()->form().dtype == PB_FP8))
            return CodeSources();
    }
    return out;
}

Result<LoadedWeight> WeightSource::load_codes(const Share& share, const CodeSources& sources, LoadMemory memory) const {
    CodeForm form = sources[0]->form();
    for (const auto& source : sources) form = holding_both(form, source->form());
    const std::span<const int32_t> order = sources[0]->order();
    LoadedWeight out{form.dtype, share.rows, share.cols, {}, {}, form.group, {}, {}, {}, std::move(memory)};
    // One after the other, each from a multiple of 64 bytes on.
    size_t bytes = 0;
    const auto place = [&](int64_t count, size_t each) {
        const size_t at = bytes;
        bytes += (static_cast<size_t>(count) * each + 63) / 64 * 64;
        return at;
    };
    const int64_t row_bytes = form.row_bytes(out.cols), groups = form.groups(out.cols);
    const bool with_offsets = form.offsets == CodeForm::Offsets::kSome;
    const size_t codes = place(out.rows * row_bytes, 1), scales = place(out.rows * groups, sizeof(float)),
                 offsets = place(with_offsets ? out.rows * groups : 0, sizeof(float)),
                 ordered = place(static_cast<int64_t>(order.size()), sizeof(int32_t)),
                 bias = place(share.has_bias ? out.rows : 0, sizeof(float));
    if (!out.memory.at_least(bytes)) return no_memory(share, form.dtype);
    std::byte* const data = out.memory.data();
    const auto floats = [&](size_t at) { return reinterpret_cast<float*>(data + at); };
    out.data = {data + codes, static_cast<size_t>(out.rows * row_bytes)};
    out.scales = {floats(scales), static_cast<size_t>(out.rows * groups)};
    out.offsets = {floats(offsets), with_offsets ? out.scales.size() : 0};
    out.order = {reinterpret_cast<int32_t*>(data + ordered), order.size()};
    out.bias = {data + bias, share.has_bias ? static_cast<size_t>(out.rows) * sizeof(float) : 0};
    if (!order.empty()) std::memcpy(data + ordered, order.data(), order.size_bytes());
    int64_t row = 0;
    for (size_t i = 0; i < sources.size(); row += share.pieces[i].rows, ++i) {
        const CodeTarget target{form, out.cols, data + codes + row * row_bytes, floats(scales) + row * groups,
                                with_offsets ? floats(offsets) + row * groups : nullptr};
        PB_CHECK(write_codes(*sources[i], share.pieces[i].rows, target, share.pieces[i].name, pool_));
        if (share.has_bias)
            read(share.biases[i], PB_F32, data + bias + static_cast<size_t>(row) * sizeof(float), pool_);
    }
    return out;
}

// To the numbers of each piece: the model's offset less what the file has added already.
std::vector<float> WeightSource::to_add(const Share& share, float offset) const {
    std::vector<float> out;
    for (size_t i = 0; i < share.pieces.size(); ++i) {
        out.push_back(checkpoint_ ? offset : 0); // dummy vectors are near 1 as they are
        if (checkpoint_ && !share.packed[i])
            out.back() -= checkpoint_->tensor(stored_name(share.pieces[i].name))->added;
    }
    return out;
}

Result<LoadedWeight> WeightSource::load_real(const Share& share, pb_dtype dtype, float offset,
                                             LoadMemory memory) const {
    const std::vector<float> sums = to_add(share, offset);
    const bool whole = std::ranges::all_of(sums, [](float sum) { return sum == 0; });
    if (offset != 0 || !whole) dtype = PB_F32; // a sum that bf16 would round
    LoadedWeight out{dtype, share.rows, share.cols, {}, {}, 0, {}, {}, {}, std::move(memory)};
    const auto bytes = static_cast<size_t>(out.rows * out.cols * dtype_bytes(dtype));
    const std::byte* in_place = nullptr;
    if (checkpoint_ && share.pieces.size() == 1 && whole && !share.packed[0])
        in_place = piece_in_place(share.pieces[0], *checkpoint_->tensor(stored_name(share.pieces[0].name)), dtype);
    const size_t bias_bytes = share.has_bias ? static_cast<size_t>(out.rows * dtype_bytes(dtype)) : 0;
    const size_t copied = in_place ? 0 : bytes;
    if (!out.memory.at_least(copied + bias_bytes)) return no_memory(share, dtype);
    std::byte* const data = out.memory.data();
    std::byte* const bias = data + copied;
    out.data = {in_place ? in_place : data, bytes};
    out.bias = {bias, bias_bytes};
    int64_t row = 0;
    for (size_t i = 0; i < share.pieces.size(); row += share.pieces[i].rows, ++i) {
        std::byte* const target = data + row * out.cols * dtype_bytes(dtype);
        if (share.packed[i]) write_real(*share.packed[i], share.pieces[i].rows, out.cols, dtype, target, pool_);
        else if (!in_place) read(share.pieces[i], dtype, target, pool_);
        if (share.has_bias) read(share.biases[i], dtype, bias + row * dtype_bytes(dtype), pool_);
        if (sums[i] != 0) add(sums[i], target, share.pieces[i].rows * out.cols);
    }
    return out;
}

void WeightSource::forget(const pb_weight_spec& spec) const {
    if (!checkpoint_) return;
    for (uint32_t i = 0; i < std::min<uint32_t>(spec.part_count, PB_MAX_FUSED); ++i) {
        const std::string name = text_of(spec.parts[i].name);
        if (const auto module = packed_module(name))
            for (const char* kind : {".qweight", ".scales", ".qzeros", ".weight_packed", ".weight", ".weight_scale",
                                     ".weight_blocks", ".weight_scales"})
                checkpoint_->forget(*module + kind);
        else checkpoint_->forget(stored_name(name));
    }
}

// AWQ and GPTQ leave the head real, and what the model wants exact; of MXFP4 checkpoints the experts are codes.
Result<LoadedWeight> WeightSource::outline(const pb_weight_spec& spec, const Share& share, const WeightForm& form,
                                           LoadMemory memory) const {
    LoadedWeight out{spec.offset != 0 ? PB_F32 : form.dtype, share.rows, share.cols, {}, {}, 0, {}, {}, {},
                     std::move(memory)};
    if (spec.role == PB_WEIGHT_LINEAR || spec.uses >> PB_WEIGHT_LINEAR & 1) {
        const bool rounded = form.quantization == Quantization::kInt8 || form.quantization == Quantization::kInt4;
        const bool head = spec.part_count == 1 && spec.parts[0].rows == vocab_size_; // of all ranks
        const bool left_real = packed_ && packed_->method == PackedFormat::Method::kMxfp4 && !(spec.share > 0);
        if (rounded) {
            out.dtype = form.quantization == Quantization::kInt4 ? PB_I4 : PB_I8;
            out.group = form.stored_group();
        } else if (form.quantization == Quantization::kAsStored && packed_ && !head && !left_real && !spec.exact) {
            out.dtype = !packed_->is_integers() ? PB_FP8 : packed_->bits == 4 ? PB_I4 : PB_I8;
            out.group = packed_->is_integers() ? packed_->device_group(out.cols)
                                               : fp8_group(packed_->block_cols, share.pieces[0]);
            if (out.group < 16) out.group = 0, out.dtype = form.dtype;
        }
    }
    if (share.has_bias) {
        const auto bytes = static_cast<size_t>(out.rows * (out.group ? 4 : dtype_bytes(out.dtype)));
        if (!out.memory.at_least(bytes)) return no_memory(share, out.dtype);
        std::memset(out.memory.data(), 0, bytes);
        out.bias = {out.memory.data(), bytes};
    }
    return out;
}

Result<LoadedWeight> WeightSource::load(const pb_weight_spec& spec, const WeightForm& form, uint32_t rank,
                                        uint32_t size, LoadedWeight reuse) const {
    PB_CHECK(check_form(form));
    PB_TRY(const Share share, this->share(spec, rank, size));
    if (numbers_ == Numbers::kNone) return outline(spec, share, form, std::move(reuse.memory));
    if (spec.role == PB_WEIGHT_LINEAR || spec.uses >> PB_WEIGHT_LINEAR & 1) {
        PB_TRY(const CodeSources sources, code_sources(share, form));
        if (!sources.empty()) return load_codes(share, sources, std::move(reuse.memory));
    }
    return load_real(share, form.dtype, spec.offset, std::move(reuse.memory));
}

}  // namespace patchbay::weights
