// Any bytes as a safetensors file: an error or tensors that lie inside it.
#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto header = patchbay::weights::parse_safetensors({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
    if (!header) return header.error().empty() ? __builtin_trap(), 0 : 0;
    unsigned sum = 0;
    for (const auto& [name, entry] : header->tensors) {
        if (entry.begin < header->bytes || entry.begin > entry.end || entry.end > size) __builtin_trap();
        for (uint64_t i = entry.begin; i < entry.end; ++i) sum += data[i];
    }
    return sum == UINT32_MAX ? -1 : 0;
}
