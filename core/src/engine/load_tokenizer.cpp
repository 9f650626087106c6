#include "engine/load_tokenizer.hpp"

#include <filesystem>

#include "base/printable.hpp"
#include "config/engine_config.hpp"
#include "weights/checkpoint.hpp"
#include "weights/gguf_tokenizer.hpp"

namespace patchbay::engine {

Result<std::shared_ptr<const text::Tokenizer>> load_tokenizer(const std::filesystem::path& path) {
    const auto load = weights::is_gguf(path) ? weights::load_gguf_tokenizer : text::Tokenizer::load;
    return in_one_line(load(path));
}

Result<std::shared_ptr<const text::Tokenizer>> load_tokenizer(const config::EngineConfig& c, bool reads_weights) {
    if (c.model.tokenizer == "none") return std::shared_ptr<const text::Tokenizer>();
    const std::string folder = c.model.tokenizer.empty() ? c.model.path : c.model.tokenizer;
    const bool needed = reads_weights || !c.model.tokenizer.empty();
    // A shape has no folder; one that is read for its shape may have no tokenizer.
    const bool without =
        folder.empty() || (!needed && !std::filesystem::exists(std::filesystem::path(folder) / "tokenizer.json"));
    if (without) return std::shared_ptr<const text::Tokenizer>();
    return load_tokenizer(std::filesystem::path(folder));
}

}  // namespace patchbay::engine
