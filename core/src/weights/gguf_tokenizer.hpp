// The tokenizer that a GGUF file holds, built by core/src/text as that of the model's folder would be. For the
// engine.
#pragma once
#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "text/tokenizer.hpp"
#include "weights/gguf_model.hpp"

namespace patchbay::weights {

Result<std::shared_ptr<const text::Tokenizer>> gguf_tokenizer(const Gguf&);
Result<std::shared_ptr<const text::Tokenizer>> load_gguf_tokenizer(const std::filesystem::path& file);

}  // namespace patchbay::weights
