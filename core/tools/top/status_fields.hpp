// Fields of GET /status as text that a terminal may show. A field that is missing is empty: the engine may be another
// version than this program.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/printable.hpp"

namespace patchbay::top {

inline std::string raw_field(const nlohmann::ordered_json& json, const std::string& path) {
    const nlohmann::ordered_json::json_pointer pointer(path);
    if (!json.contains(pointer)) return {};
    const auto& value = json.at(pointer);
    if (value.is_null()) return {};
    return value.is_string() ? value.get<std::string>() : value.dump();
}
inline std::string field_text(const nlohmann::ordered_json& json, const std::string& path) {
    return printable(raw_field(json, path));
}
// Of a field that is a whole message, which may be long.
inline std::string field_message(const nlohmann::ordered_json& json, const std::string& path) {
    return printable_message(raw_field(json, path));
}

}  // namespace patchbay::top
