// What tokenizer_config.json says over the tokenizer's own file: which tokens begin and end a text.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.hpp"
#include "text/added_tokens.hpp"
#include "text/pipeline_tokenizer.hpp"

namespace patchbay::text {

// The list of added tokens that tokenizer.json has too; null: none.
Result<std::vector<AddedToken>> read_added_tokens(const nlohmann::json&);
// tokenizer_config.json's {"0": {"content": …}, …} as that list.
Result<nlohmann::json> listed_added_tokens(const nlohmann::json& config);
// Makes the tokens that it lists those of the vocabulary or of `added`; its flags count, as in transformers.
Result<> add_listed_tokens(const nlohmann::json& config, const Vocabulary&, std::vector<AddedToken>& added);
// Makes the tokens that it only names, such as bos_token, special: those of `added` and, with kFound, those of the
// vocabulary.
void add_named_tokens(const nlohmann::json& config, const Vocabulary&, NamedTokens, std::vector<AddedToken>& added);

// eos_token and, where they are given, add_bos_token and add_eos_token, which say more than the post-processor.
Result<> apply_config(const nlohmann::json& config, PipelineTokenizer::Parts&);

}  // namespace patchbay::text
