// Rank files, as tiktoken reads them: a line for each token, "aGVsbG8= 345", the bytes in base64 and the rank, which is
// the id and the order of merging. The file says neither how text is split nor which special tokens there are: both are
// known by the model.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::text {

bool is_tiktoken(std::string_view file); // by its first line

// The tokens by id; empty where no token has the id. Errors name the line.
Result<std::vector<std::string>> parse_tiktoken(std::string_view file);

// config: tokenizer_config.json, or an empty object; its tokenizer_class and added_tokens_decoder count. name: of the
// file, without its folder. where: for errors.
Result<std::shared_ptr<const Tokenizer>> tiktoken_tokenizer(std::string_view file, const nlohmann::json& config,
                                                            const std::string& name, const std::string& where);

}  // namespace patchbay::text
