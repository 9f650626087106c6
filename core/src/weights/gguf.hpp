// The header of a GGUF file: metadata as keys and typed values, and where each tensor lies. Versions 2 and 3, in
// little-endian.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "weights/encoding.hpp"

namespace patchbay::weights {

enum class GgufType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

struct GgufValue {                     // a view into the file
    GgufType type;                     // of an array: of its elements
    std::optional<uint64_t> count;     // of an array's elements; none: a single value
    std::span<const std::byte> bytes;  // as in the file: a string begins with its length

    std::optional<int64_t> integer() const;  // of a single integer that fits
    std::optional<double> number() const;    // of a single integer or float
    std::optional<bool> truth() const;
    std::optional<std::string_view> text() const;
    std::optional<std::vector<std::string_view>> texts() const;  // of an array of strings
    std::optional<std::vector<double>> numbers() const;          // of an array of integers or floats
    std::string shown() const;                                   // what it is, for errors: "an array of 3 strings"
};

struct GgufTensor {
    uint32_t type;                     // as numbered by the format
    std::optional<Encoding> encoding;  // none: one that is not read
    std::vector<int64_t> shape;        // outermost first: the file has it the other way
    uint64_t begin, end;               // in the file; of an encoding that is not read, begin is end
    const std::byte* data = nullptr;   // where begin is
};

struct GgufHeader {
    uint64_t bytes;  // up to the tensors' data
    std::map<std::string, GgufValue, std::less<>> metadata;
    std::map<std::string, GgufTensor, std::less<>> tensors;

    const GgufValue* find(std::string_view key) const;
};

const char* gguf_type_name(uint32_t tensor_type);  // "Q5_K"; of a number that the format does not define: "unknown"

// file: the whole file's bytes, which the values point into; where: its name, for errors. Every value and every tensor
// whose encoding is known lies inside the file, and the tensor has the size that its shape needs.
Result<GgufHeader> parse_gguf(std::span<const std::byte> file, const std::string& where);

}  // namespace patchbay::weights
