// The ids that a tokenizer puts around every text: the `post_processor` of tokenizer.json, for one text.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::text {

struct Surround {
    std::vector<TokenId> prefix, suffix;
};
Result<Surround> read_post_processor(const nlohmann::json&); // null: nothing

Result<TokenId> read_token_id(const nlohmann::json&, const std::string& token); // token: for the error

}  // namespace patchbay::text
