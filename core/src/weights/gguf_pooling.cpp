#include "weights/gguf_pooling.hpp"

#include "weights/gguf_keys.hpp"

namespace patchbay::weights {

Result<std::optional<int64_t>> read_gguf_pooling(const std::filesystem::path& path) {
    PB_TRY(const GgufFile file, open_gguf(path));
    PB_TRY(std::string architecture, gguf_architecture(file.gguf));
    const GgufKeys keys{file.gguf, std::move(architecture), {}};
    const std::string key = keys.own("pooling_type");
    if (!keys.has(key)) return std::optional<int64_t>();
    PB_TRY(const int64_t type, keys.integer(key));
    return std::optional(type);
}

}  // namespace patchbay::weights
