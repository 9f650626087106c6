// The `pattern` of tokenizer.json's Split and Replace: {"String": "…"} or {"Regex": "…"}.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>

#include "base/result.hpp"
#include "text/regex.hpp"

namespace patchbay::text {

Result<std::variant<std::string, Regex>> read_pattern(const nlohmann::json& part, const std::string& type);

}  // namespace patchbay::text
