// Builds a tokenizer from a Hugging Face tokenizer.json. Tokenizer::load() reads the files; tests and the fuzz target
// come in here.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "text/added_tokens.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::text {

// config: tokenizer_config.json (which tokens begin and end a text), or empty; an eos_token_id in it counts where it
// has no eos_token. where: the folder, for errors.
Result<std::shared_ptr<const Tokenizer>> tokenizer_from_json(const nlohmann::json& tokenizer,
                                                             const nlohmann::json& config, const std::string& where,
                                                             NamedTokens = NamedTokens::kFound);

}  // namespace patchbay::text
