// Token ids as people and programs write them: "15 27 3", "15,27,3", "[15, 27, 3]". For flags and files.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::cli {

// At least one; white space, brackets and single commas part them.
Result<std::vector<text::TokenId>> read_token_ids(std::string_view);
CLI::Validator token_ids(); // for CLI::Option::check()

}  // namespace patchbay::cli
