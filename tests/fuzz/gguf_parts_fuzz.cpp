// A GGUF model in two parts, of which the input says where the first ends: an error, or tensors of both.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fuzz_folder.hpp"
#include "weights/gguf_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace patchbay::weights;
    uint16_t first = 0;
    if (size < sizeof first || size > 1 << 14) return 0;
    std::memcpy(&first, data, sizeof first);
    const std::string_view bytes(reinterpret_cast<const char*>(data) + sizeof first, size - sizeof first);
    const size_t cut = std::min<size_t>(first, bytes.size());
    const auto path = fuzz_folder() / "m-00001-of-00002.gguf";
    std::ofstream(path, std::ios::binary) << bytes.substr(0, cut);
    std::ofstream(fuzz_folder() / "m-00002-of-00002.gguf", std::ios::binary) << bytes.substr(cut);
    const auto file = open_gguf(path);
    if (!file) return file.error().empty() ? __builtin_trap(), 0 : 0;
    unsigned sum = 0;
    for (const auto& [name, tensor] : file->gguf.header.tensors)
        for (uint64_t i = 0; i < tensor.end - tensor.begin; ++i) sum += static_cast<unsigned>(tensor.data[i]);
    return sum == UINT32_MAX ? -1 : 0;
}
