#include "text/json_fields.hpp"

#include "base/refusals.hpp"

namespace patchbay::text {

using nlohmann::json;

const json& member(const json& object, const char* key) {
    static const json kNull;
    if (!object.is_object()) return kNull;
    const auto at = object.find(key);
    return at == object.end() ? kNull : *at;
}

std::string text_or(const json& value, const std::string& default_value) {
    return value.is_string() ? value.get<std::string>() : default_value;
}

bool is_true(const json& value) { return value.is_boolean() && value.get<bool>(); }
std::string type_of(const json& part) { return text_or(member(part, "type"), ""); }
std::string shown(const json& value) { return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80); }

Result<bool> flag(const json& of, const char* key, bool default_value) {
    const json& value = member(of, key);
    if (value.is_null()) return default_value;
    if (!value.is_boolean()) return invalid(std::string("'") + key + "' is neither true nor false but " + shown(value));
    return value.get<bool>();
}

Result<std::string> needed_text(const json& of, const char* key) {
    const json& value = member(of, key);
    if (!value.is_string()) return invalid(std::string("'") + key + "' is not a string but " + shown(value));
    return value.get<std::string>();
}

Result<uint32_t> count(const json& of, const char* key) {
    constexpr uint32_t kMaxCount = 1024;
    const json& value = member(of, key);
    if (value.is_null()) return uint32_t{0};
    if (!value.is_number_integer() || value < 0 || value > kMaxCount)
        return invalid(std::string("'") + key + "' is " + shown(value) + ", not a count up to " +
                    std::to_string(kMaxCount));
    return value.get<uint32_t>();
}

}  // namespace patchbay::text
