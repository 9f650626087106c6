#include "weights/safetensors.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_file.hpp"
#include "base/refusals.hpp"

namespace patchbay::weights {
namespace {

using nlohmann::json;

// Bytes an element; 0: a dtype that this reader does not know, or of less than a byte.
uint64_t element_bytes(std::string_view dtype) {
    if (dtype == "BOOL" || dtype == "U8" || dtype == "I8" || dtype.starts_with("F8_")) return 1;
    if (dtype == "U16" || dtype == "I16" || dtype == "F16" || dtype == "BF16") return 2;
    if (dtype == "U32" || dtype == "I32" || dtype == "F32") return 4;
    if (dtype == "U64" || dtype == "I64" || dtype == "F64" || dtype == "C64") return 8;
    return 0;
}

uint64_t little_endian_u64(std::span<const std::byte> eight) {
    uint64_t out = 0;
    for (size_t i = 8; i-- > 0;) out = out << 8 | static_cast<uint64_t>(eight[i]);
    return out;
}

Result<std::vector<int64_t>> parse_shape(const json& value) {
    if (!value.is_array()) return invalid("'shape' is not a list");
    std::vector<int64_t> shape;
    for (const json& n : value) {
        if (!n.is_number_unsigned() || n.get<uint64_t>() > INT64_MAX)
            return invalid("'shape' holds " + n.dump().substr(0, 40) + ", which is not a size");
        shape.push_back(n.get<int64_t>());
    }
    return shape;
}

Result<SafetensorsEntry> parse_entry(const json& value, uint64_t data_bytes) {
    if (!value.is_object()) return invalid("is not an object");
    const auto dtype = value.find("dtype"), shape = value.find("shape"), offsets = value.find("data_offsets");
    if (dtype == value.end() || !dtype->is_string()) return invalid("has no 'dtype'");
    if (shape == value.end()) return invalid("has no 'shape'");
    SafetensorsEntry entry;
    entry.dtype = dtype->get<std::string>();
    PB_TRY(entry.shape, parse_shape(*shape));
    if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
        !(*offsets)[1].is_number_unsigned())
        return invalid("has no 'data_offsets' of two sizes");
    entry.begin = (*offsets)[0].get<uint64_t>();
    entry.end = (*offsets)[1].get<uint64_t>();
    if (entry.begin > entry.end)
        return invalid("ends at byte " + std::to_string(entry.end) + ", before it begins at " +
                       std::to_string(entry.begin));
    if (entry.end > data_bytes)
        return invalid("ends at byte " + std::to_string(entry.end) + " of the data, but the file holds only " +
                       std::to_string(data_bytes) + " (is it truncated?)");
    if (const uint64_t each = element_bytes(entry.dtype)) {
        uint64_t bytes = each;
        for (const int64_t n : entry.shape)
            if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes))
                return invalid("has a shape whose size overflows");
        if (bytes != entry.end - entry.begin)
            return invalid("takes " + std::to_string(entry.end - entry.begin) + " bytes, but its shape needs " +
                           std::to_string(bytes) + " of " + entry.dtype);
    }
    return entry;
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file, const std::string& where) {
    if (file.size() < 8)
        return invalid(where + " is not a safetensors file: it has only " + std::to_string(file.size()) + " bytes");
    const uint64_t length = little_endian_u64(file.first(8));
    const auto* text = reinterpret_cast<const char*>(file.data()) + 8;
    // Any other kind of file gives a length of random digits; the bytes after it distinguish the two mistakes.
    const bool looks_right = file.size() > 8 && text[0] == '{';
    if (!looks_right) return invalid(where + " is not a safetensors file: byte 8 does not open a JSON header");
    if (length > kMaxHeaderBytes)
        return invalid(where + ": a header of " + std::to_string(length) + " bytes is over the format's limit of " +
                       std::to_string(kMaxHeaderBytes));
    if (length > file.size() - 8)
        return invalid(where + ": the header says that it has " + std::to_string(length) +
                       " bytes, but the file has only " + std::to_string(file.size() - 8) +
                       " after its length (is it truncated?)");
    PB_TRY(json header, parse_json({text, length}, where + " (header)", {.bytes = kMaxHeaderBytes, .depth = 8}));
    const EmptiesJson empties(header);
    if (!header.is_object()) return invalid(where + ": the header is not a JSON object");
    SafetensorsHeader out{8 + length, {}};
    for (const auto& [name, value] : header.items()) {
        if (name == "__metadata__") continue;
        auto entry = parse_entry(value, file.size() - out.bytes);
        if (!entry) return fail(entry.code(), where + ": tensor '" + name + "' " + entry.error());
        entry->begin += out.bytes;
        entry->end += out.bytes;
        out.tensors.emplace(name, *std::move(entry));
    }
    return out;
}

}  // namespace patchbay::weights
