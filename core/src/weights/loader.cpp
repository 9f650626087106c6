#include "weights/loader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>

#include "base/refusals.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "weights/code_sources.hpp"
#include "weights/rounded_codes.hpp"
#include "weights/share.hpp"

namespace patchbay::weights {
namespace {

Result<> check_form(const WeightForm& form) {
    if (form.dtype != PB_F32 && form.dtype != PB_BF16)
        return unsupported(std::string("weights are loaded as f32 or bf16, not as ") + dtype_name(form.dtype));
    if (form.group != 32 && form.group != 128 && form.group != WeightForm::kWholeRows)
        return unsupported("weights are quantised in groups of 32 or 128 columns, not of " +
                           std::to_string(form.group));
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
    return fail(StatusCode::kExhausted, "no memory for '" + share.pieces[0].name + "' of shape " +
                shape_text({share.rows, share.cols}) + " in " + dtype_name(dtype));
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
    std::error_code error;
    if (is_gguf(folder) || !std::filesystem::exists(folder / "config.json", error)) return from_checkpoint(checkpoint);
    PB_TRY(const FlatConfig config, read_model_config(folder));
    PB_TRY(const auto packed, packed_format(config));
    return from_checkpoint(std::move(checkpoint), packed);
}

WeightSource WeightSource::from_checkpoint(std::shared_ptr<const Checkpoint> checkpoint,
                                           std::optional<PackedFormat> packed) {
    WeightSource out;
    out.stored_ = StoredTensors(std::move(checkpoint), packed);
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
    PB_TRY(const auto packed, packed_format(config));
    out.stored_ = StoredTensors(nullptr, packed);
    if (const auto vocab = config.find("vocab_size"); vocab != config.end())
        std::from_chars(vocab->second.data(), vocab->second.data() + vocab->second.size(), out.vocab_size_);
    return out;
}

// Zeros, a tensor's share, or made up.
void WeightSource::read(const Piece& piece, pb_dtype wanted, std::byte* target, ThreadPool* pool) const {
    if (piece.name.empty()) std::memset(target, 0, static_cast<size_t>(piece.count() * dtype_bytes(wanted)));
    else if (stored_.checkpoint()) read_piece(piece, *stored_.tensor(piece.name), wanted, target, pool);
    else make_piece(piece, seed_, wanted, target, pool);
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
        const auto view = stored_.checkpoint() && !share.packed[i] ? stored_.tensor(piece.name)
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
            return unsupported("'" + piece.name + "' is quantised already (" +
                               (view ? facts_of(view->encoding).name : stored_.packed()->name()) +
                               "), and quantization: " + (rounded.dtype == PB_I4 ? "int4" : "int8") +
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
        out.push_back(stored_.checkpoint() ? offset : 0); // dummy vectors are near 1 as they are
        if (stored_.checkpoint() && !share.packed[i])
            out.back() -= stored_.tensor(share.pieces[i].name)->added;
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
    if (stored_.checkpoint() && share.pieces.size() == 1 && whole && !share.packed[0])
        in_place = piece_in_place(share.pieces[0], *stored_.tensor(share.pieces[0].name), dtype);
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
    for (uint32_t i = 0; i < std::min<uint32_t>(spec.part_count, PB_MAX_FUSED); ++i)
        stored_.forget(text_of(spec.parts[i].name));
}

// AWQ and GPTQ leave the head real, and what the model wants exact; of MXFP4 checkpoints the experts are codes.
Result<LoadedWeight> WeightSource::outline(const pb_weight_spec& spec, const Share& share, const WeightForm& form,
                                           LoadMemory memory) const {
    LoadedWeight out{spec.offset != 0 ? PB_F32 : form.dtype, share.rows, share.cols, {}, {}, 0, {}, {}, {},
                     std::move(memory)};
    if (spec.role == PB_WEIGHT_LINEAR || spec.uses >> PB_WEIGHT_LINEAR & 1) {
        const bool rounded = form.quantization == Quantization::kInt8 || form.quantization == Quantization::kInt4;
        const bool head = spec.part_count == 1 && spec.parts[0].rows == vocab_size_; // of all ranks
        const std::optional<PackedFormat>& packed = stored_.packed();
        const bool left_real = packed && packed->method == PackedFormat::Method::kMxfp4 && !(spec.share > 0);
        if (rounded) {
            out.dtype = form.quantization == Quantization::kInt4 ? PB_I4 : PB_I8;
            out.group = form.stored_group();
        } else if (form.quantization == Quantization::kAsStored && packed && !head && !left_real && !spec.exact) {
            out.dtype = !packed->is_integers() ? PB_FP8 : packed->bits == 4 ? PB_I4 : PB_I8;
            out.group = packed->is_integers() ? packed->device_group(out.cols)
                                              : fp8_group(packed->block_cols, share.pieces[0]);
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
    PB_TRY(const Share share, share_of(spec, rank, size, stored_));
    PB_TRY(LoadedWeight out, load_in_form(spec, share, form, std::move(reuse.memory)));
    out.whole_rows = (out.dtype == PB_I8 || out.dtype == PB_I4) && scales_whole_rows(form);
    return out;
}

bool WeightSource::scales_whole_rows(const WeightForm& form) const {
    if (form.quantization == Quantization::kInt8) return form.group == WeightForm::kWholeRows;
    const std::optional<PackedFormat>& packed = stored_.packed();
    return form.quantization == Quantization::kAsStored && packed && packed->is_integers() && packed->group_size < 0;
}

Result<LoadedWeight> WeightSource::load_in_form(const pb_weight_spec& spec, const Share& share, const WeightForm& form,
                                                LoadMemory memory) const {
    if (numbers_ == Numbers::kNone) return outline(spec, share, form, std::move(memory));
    if (spec.role == PB_WEIGHT_LINEAR || spec.uses >> PB_WEIGHT_LINEAR & 1) {
        PB_TRY(const CodeSources sources, code_sources(share, form));
        if (!sources.empty()) return load_codes(share, sources, std::move(memory));
    }
    return load_real(share, form.dtype, spec.offset, std::move(memory));
}

}  // namespace patchbay::weights
