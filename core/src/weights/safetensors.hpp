// The header of a safetensors file: 8 bytes of little-endian length, that much JSON, then the tensors' bytes.
// Format: https://github.com/huggingface/safetensors#format
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace patchbay::weights {

constexpr uint64_t kMaxHeaderBytes = 100'000'000; // the format's own limit

struct SafetensorsEntry {
    std::string dtype; // as written: "BF16"
    std::vector<int64_t> shape;
    uint64_t begin, end; // from the start of the file, inside it
};

struct SafetensorsHeader {
    uint64_t bytes; // of the length field and the JSON
    std::map<std::string, SafetensorsEntry> tensors;
};

// file: the whole file's bytes; where: its name, for errors. Every entry lies inside the file and, where its dtype is
// one that the format defines with whole bytes, has the size that its shape needs.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file, const std::string& where);

}  // namespace patchbay::weights
