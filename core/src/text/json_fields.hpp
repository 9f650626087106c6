// Reading the parts of tokenizer.json, whose fields may be absent, null or of another type than expected.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"

namespace patchbay::text {

const nlohmann::json& member(const nlohmann::json& object, const char* key); // null if absent
std::string text_or(const nlohmann::json&, const std::string& default_value);
bool is_true(const nlohmann::json&);
std::string type_of(const nlohmann::json& part); // its "type"; empty: it has none
std::string shown(const nlohmann::json&);        // for errors: short, ASCII
// A flag: true, false or absent.
Result<bool> flag(const nlohmann::json& of, const char* key, bool default_value);
// A required text.
Result<std::string> needed_text(const nlohmann::json& of, const char* key);
Result<uint32_t> count(const nlohmann::json& of, const char* key); // absent: 0

}  // namespace patchbay::text
