#include "weights/gguf.hpp"

#include <bit>
#include <cstring>

#include "base/refusals.hpp"
#include "weights/raw_value.hpp"

namespace patchbay::weights {
namespace {

constexpr uint64_t kMaxKeys = 1 << 16, kMaxTensors = 1 << 20, kMaxKeyBytes = 65535, kMaxNameBytes = 256;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint32_t kMaxDimensions = 4;
constexpr int kMaxNesting = 4;  // arrays in arrays

// Bytes of one value; 0: they vary.
uint64_t bytes_of(GgufType type) {
    static constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return kBytes[static_cast<size_t>(type)];
}

class Cursor {
  public:
    Cursor(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

    Failure fault(const std::string& what) const {
        return invalid(where_ + ": " + what + " (at byte " + std::to_string(at_) + ")");
    }
    uint64_t at() const { return at_; }
    uint64_t left() const { return file_.size() - at_; }

    Result<std::span<const std::byte>> take(uint64_t bytes, const char* what) {
        if (bytes > left())
            return fault(std::string(what) + " of " + std::to_string(bytes) + " bytes, but the file has only " +
                         std::to_string(left()) + " more (is it truncated?)");
        const auto out = file_.subspan(at_, bytes);
        at_ += bytes;
        return out;
    }
    template <class T>
    Result<T> number(const char* what) {
        PB_TRY(const auto bytes, take(sizeof(T), what));
        return raw_value<T>(bytes.data());
    }
    Result<std::string> text(uint64_t max_bytes, const char* what) {
        PB_TRY(const uint64_t length, number<uint64_t>(what));
        if (length > max_bytes)
            return fault(std::string(what) + " of " + std::to_string(length) + " bytes, more than " +
                         std::to_string(max_bytes));
        PB_TRY(const auto bytes, take(length, what));
        return std::string(reinterpret_cast<const char*>(bytes.data()), length);
    }
    Result<GgufType> type() {
        PB_TRY(const uint32_t type, number<uint32_t>("a type"));
        if (type > static_cast<uint32_t>(GgufType::kF64))
            return fault("a value of type " + std::to_string(type) + ", which the format does not define");
        return static_cast<GgufType>(type);
    }
    Result<> skip(GgufType type, uint64_t count, int nesting) {
        if (const uint64_t each = bytes_of(type)) {
            if (count > left() / each)
                return fault("an array of " + std::to_string(count) + " values, but the file has only " +
                             std::to_string(left()) + " bytes more (is it truncated?)");
            at_ += count * each;
            return {};
        }
        if (count > left() / 8) return fault("an array of " + std::to_string(count) + " values does not fit the file");
        for (uint64_t i = 0; i < count; ++i) {
            if (type == GgufType::kString) {
                PB_TRY(const uint64_t length, number<uint64_t>("a string"));
                PB_CHECK(drop(take(length, "a string")));
            } else {
                if (nesting == 0) return fault("arrays are nested more than " + std::to_string(kMaxNesting) + " deep");
                PB_TRY(const GgufType inner, this->type());
                PB_TRY(const uint64_t inner_count, number<uint64_t>("an array"));
                PB_CHECK(skip(inner, inner_count, nesting - 1));
            }
        }
        return {};
    }
    Result<GgufValue> value() {
        PB_TRY(GgufType type, this->type());
        std::optional<uint64_t> count;
        if (type == GgufType::kArray) {
            PB_TRY(type, this->type());
            PB_TRY(count, number<uint64_t>("an array"));
        }
        const uint64_t begin = at_;
        PB_CHECK(skip(type, count.value_or(1), kMaxNesting - 1));
        return GgufValue{type, count, file_.subspan(begin, at_ - begin)};
    }

  private:
    static Result<> drop(const Result<std::span<const std::byte>>& taken) {
        if (!taken) return taken.failure();
        return {};
    }

    std::span<const std::byte> file_;
    const std::string& where_;
    uint64_t at_ = 0;
};

std::optional<Encoding> encoding_of(uint32_t type) {
    for (auto encoding = Encoding::kF32; encoding <= Encoding::kMXFP4;
         encoding = static_cast<Encoding>(static_cast<int>(encoding) + 1))
        if (facts_of(encoding).gguf_type == static_cast<int64_t>(type)) return encoding;
    return std::nullopt;
}

// begin and end count from the start of the data yet.
Result<GgufTensor> read_tensor(Cursor& cursor, const std::string& name) {
    const auto fault = [&](const std::string& what) { return cursor.fault("tensor '" + name + "' " + what); };
    PB_TRY(const uint32_t dimensions, cursor.number<uint32_t>("a number of dimensions"));
    if (dimensions < 1 || dimensions > kMaxDimensions)
        return fault("has " + std::to_string(dimensions) + " dimensions, expected 1 to " +
                     std::to_string(kMaxDimensions));
    GgufTensor tensor{};
    uint64_t elements = 1;
    for (uint32_t i = 0; i < dimensions; ++i) {
        PB_TRY(const uint64_t size, cursor.number<uint64_t>("a size"));
        if (size < 1 || size > uint64_t{1} << 40 || __builtin_mul_overflow(elements, size, &elements))
            return fault("has a size of " + std::to_string(size));
        tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    PB_TRY(tensor.type, cursor.number<uint32_t>("a type"));
    PB_TRY(tensor.begin, cursor.number<uint64_t>("an offset"));
    tensor.encoding = encoding_of(tensor.type);
    tensor.end = tensor.begin;
    if (!tensor.encoding) return tensor;
    const EncodingFacts facts = facts_of(*tensor.encoding);
    const auto block = static_cast<uint64_t>(facts.block);
    if (tensor.shape.back() % facts.block != 0)
        return fault("has rows of " + std::to_string(tensor.shape.back()) + " numbers, which are not whole blocks of " +
                     facts.name + " (" + std::to_string(facts.block) + ")");
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements / block, static_cast<uint64_t>(facts.block_bytes), &bytes) ||
        __builtin_add_overflow(tensor.begin, bytes, &tensor.end))
        return fault("has a size that overflows");
    return tensor;
}

Result<uint64_t> alignment_of(const GgufHeader& header, const std::string& where) {
    const GgufValue* const given = header.find("general.alignment");
    if (!given) return uint64_t{32};
    const auto value = given->integer();
    if (!value || *value < 1 || static_cast<uint64_t>(*value) > kMaxAlignment ||
        !std::has_single_bit(static_cast<uint64_t>(*value)))
        return invalid(where + ": general.alignment is " + given->shown() + ", expected a power of two to " +
                       std::to_string(kMaxAlignment));
    return static_cast<uint64_t>(*value);
}

Result<> check_start(Cursor& cursor, std::span<const std::byte> file, const std::string& where) {
    if (file.size() < 4 || std::memcmp(file.data(), "GGUF", 4) != 0)
        return invalid(where + " is not a GGUF file: it does not begin with 'GGUF'");
    PB_TRY(const uint32_t magic, cursor.number<uint32_t>("a magic number"));
    static_cast<void>(magic);
    PB_TRY(const uint32_t version, cursor.number<uint32_t>("a version"));
    if (version == 2 || version == 3) return {};
    if (version == 2u << 24 || version == 3u << 24)
        return unsupported(where + " is a big-endian GGUF file, expected a little-endian one");
    return unsupported(where + " is GGUF version " + std::to_string(version) + ", expected 2 or 3" +
                       (version == 1 ? " (convert the model again)" : ""));
}

Result<> place_tensors(GgufHeader& header, std::span<const std::byte> file, const std::string& where) {
    const uint64_t file_bytes = file.size();
    PB_TRY(const uint64_t alignment, alignment_of(header, where));
    header.bytes = (header.bytes + alignment - 1) / alignment * alignment;
    if (header.bytes > file_bytes && !header.tensors.empty())
        return invalid(where + ": ends before its tensors' data (is it truncated?)");
    header.bytes = std::min(header.bytes, file_bytes);
    const uint64_t data = file_bytes - header.bytes;
    for (auto& entry : header.tensors) {
        const auto fault = [&](const std::string& what) {
            return invalid(where + ": tensor '" + entry.first + "' " + what);
        };
        GgufTensor& tensor = entry.second;
        if (tensor.begin % alignment != 0)
            return fault("begins at byte " + std::to_string(tensor.begin) + " of the data, not a multiple of " +
                         std::to_string(alignment));
        if (tensor.end > data)
            return fault("ends at byte " + std::to_string(tensor.end) + " of the data, but the file holds only " +
                         std::to_string(data) + " (is it truncated?)");
        tensor.begin += header.bytes;
        tensor.end += header.bytes;
        tensor.data = file.data() + tensor.begin;
    }
    return {};
}

}  // namespace

const GgufValue* GgufHeader::find(std::string_view key) const {
    const auto at = metadata.find(key);
    return at == metadata.end() ? nullptr : &at->second;
}

const char* gguf_type_name(uint32_t type) {
    static constexpr const char* kNames[] = {
        "F32",   "F16",    "Q4_0", "Q4_1", "unknown", "unknown", "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
        "Q3_K",  "Q4_K",   "Q5_K", "Q6_K", "Q8_K",    "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
        "IQ2_S", "IQ4_XS", "I8",   "I16",  "I32",     "I64",     "F64",    "IQ1_M",   "BF16"};
    if (type == 39) return "MXFP4"; // those between have no use any more, or none here
    return type < std::size(kNames) ? kNames[type] : "unknown";
}

Result<GgufHeader> parse_gguf(std::span<const std::byte> file, const std::string& where) {
    Cursor cursor(file, where);
    PB_CHECK(check_start(cursor, file, where));
    PB_TRY(const uint64_t tensors, cursor.number<uint64_t>("a number of tensors"));
    PB_TRY(const uint64_t keys, cursor.number<uint64_t>("a number of keys"));
    if (tensors > kMaxTensors)
        return cursor.fault(std::to_string(tensors) + " tensors are more than " + std::to_string(kMaxTensors));
    if (keys > kMaxKeys)
        return cursor.fault(std::to_string(keys) + " keys are more than " + std::to_string(kMaxKeys));
    GgufHeader header;
    for (uint64_t i = 0; i < keys; ++i) {
        PB_TRY(std::string key, cursor.text(kMaxKeyBytes, "a key"));
        auto value = cursor.value();
        if (!value) return fail(value.code(), value.error() + " in the value of '" + key + "'");
        if (!header.metadata.emplace(key, *value).second) return cursor.fault("the key '" + key + "' is there twice");
    }
    for (uint64_t i = 0; i < tensors; ++i) {
        PB_TRY(std::string name, cursor.text(kMaxNameBytes, "a tensor's name"));
        PB_TRY(GgufTensor tensor, read_tensor(cursor, name));
        if (!header.tensors.emplace(name, std::move(tensor)).second)
            return cursor.fault("the tensor '" + name + "' is there twice");
    }
    header.bytes = cursor.at();
    PB_CHECK(place_tensors(header, file, where));
    return header;
}

}  // namespace patchbay::weights
