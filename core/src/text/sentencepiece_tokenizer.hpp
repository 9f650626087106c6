// A tokenizer of a SentencePiece model: the same parts that tokenizer.json would name, made from what the model says.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "text/added_tokens.hpp"
#include "text/sentencepiece_model.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::text {

// config: tokenizer_config.json, or an empty object. Its added tokens, and with kFound the special tokens that it
// names, are found in text. where: the folder, for errors.
Result<std::shared_ptr<const Tokenizer>> sentencepiece_tokenizer(const SentencePieceModel&, nlohmann::json config,
                                                                 const std::string& where,
                                                                 NamedTokens = NamedTokens::kFound);

}  // namespace patchbay::text
