// What a value of GGUF's metadata says, asked for by the type that is expected.
#include <cstdint>

#include "weights/gguf.hpp"
#include "weights/raw_value.hpp"

namespace patchbay::weights {
namespace {

bool is_number(GgufType t) { return t != GgufType::kBool && t != GgufType::kString && t != GgufType::kArray; }

// at: one value of a type that is_number().
double number_at(GgufType type, const std::byte* at) {
    switch (type) {
        case GgufType::kU8: return raw_value<uint8_t>(at);
        case GgufType::kI8: return raw_value<int8_t>(at);
        case GgufType::kU16: return raw_value<uint16_t>(at);
        case GgufType::kI16: return raw_value<int16_t>(at);
        case GgufType::kU32: return raw_value<uint32_t>(at);
        case GgufType::kI32: return raw_value<int32_t>(at);
        case GgufType::kF32: return raw_value<float>(at);
        case GgufType::kU64: return static_cast<double>(raw_value<uint64_t>(at));
        case GgufType::kI64: return static_cast<double>(raw_value<int64_t>(at));
        default: return raw_value<double>(at);
    }
}

std::string_view text_at(const std::byte* at) {
    return {reinterpret_cast<const char*>(at) + 8, raw_value<uint64_t>(at)};
}

}  // namespace

std::optional<int64_t> GgufValue::integer() const {
    if (count || !is_number(type) || type == GgufType::kF32 || type == GgufType::kF64) return std::nullopt;
    if (type == GgufType::kI64) return raw_value<int64_t>(bytes.data());
    if (type != GgufType::kU64) return static_cast<int64_t>(number_at(type, bytes.data()));  // of 32 bits: exact
    const auto value = raw_value<uint64_t>(bytes.data());
    if (value > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(value);
}

std::optional<double> GgufValue::number() const {
    if (count || !is_number(type)) return std::nullopt;
    return number_at(type, bytes.data());
}

std::optional<bool> GgufValue::truth() const {
    if (count || type != GgufType::kBool) return std::nullopt;
    return bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufValue::text() const {
    if (count || type != GgufType::kString) return std::nullopt;
    return text_at(bytes.data());
}

std::optional<std::vector<std::string_view>> GgufValue::texts() const {
    if (!count || type != GgufType::kString) return std::nullopt;
    std::vector<std::string_view> out;
    out.reserve(*count);
    for (const std::byte* at = bytes.data(); out.size() < *count; at += 8 + out.back().size())
        out.push_back(text_at(at));
    return out;
}

std::optional<std::vector<double>> GgufValue::numbers() const {
    if (!count || !is_number(type)) return std::nullopt;
    std::vector<double> out;
    out.reserve(*count);
    const size_t each = *count ? bytes.size() / *count : 0;
    for (size_t i = 0; i < *count; ++i) out.push_back(number_at(type, bytes.data() + i * each));
    return out;
}

std::string GgufValue::shown() const {
    static constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                             "bool", "string", "array", "u64", "i64", "f64"};
    const std::string name = kNames[static_cast<size_t>(type)];
    if (count) return "an array of " + std::to_string(*count) + " " + name;
    if (const auto value = integer()) return std::to_string(*value);
    if (const auto value = number()) return std::to_string(*value);
    if (const auto value = truth()) return *value ? "true" : "false";
    if (const auto value = text()) return "'" + std::string(value->substr(0, 40)) + "'";
    return name;
}

}  // namespace patchbay::weights
