#include <nlohmann/json.hpp>

#include "config/plugin_slot.hpp"
#include "config/show.hpp"
#include "config/slots.hpp"

namespace patchbay::config {
namespace {

using Json = nlohmann::ordered_json; // keys stay in the order of their tables

Json as_written(const std::string& text, ValueType type) { // a default in YAML text as the JSON value it means
    Json value = Json::parse(text, nullptr, false);
    const bool textual = type == ValueType::kString || type == ValueType::kEnum || type == ValueType::kOther;
    return textual || value.is_discarded() ? Json(text) : value;
}

void add_range(Json& out, const std::optional<double>& min, const std::optional<double>& max) {
    const auto number = [](double x) {
        return x == static_cast<double>(static_cast<int64_t>(x)) ? Json(static_cast<int64_t>(x)) : Json(x);
    };
    if (min) out["minimum"] = number(*min);
    if (max && *max < 0x1p62) out["maximum"] = number(*max);
}

Json value_schema(const KeyInfo& key);

Json map_schema(const std::vector<KeyInfo>& keys) {
    Json properties = Json::object(), required = Json::array();
    for (const KeyInfo& key : keys) {
        properties[key.name] = value_schema(key);
        if (key.required) required.push_back(key.name);
    }
    Json out{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) out["required"] = std::move(required);
    out["additionalProperties"] = false;
    return out;
}

Json value_schema(const KeyInfo& key) {
    Json out = Json::object();
    switch (key.type) {
        case ValueType::kBool: out["type"] = "boolean"; break;
        case ValueType::kInt: out["type"] = "integer"; break;
        case ValueType::kFloat: out["type"] = "number"; break;
        case ValueType::kString:
            out["type"] = {"string", "number", "boolean"};
            break;  // 8 is a text where one is expected
        case ValueType::kEnum: out["enum"] = key.choices; break;
        case ValueType::kBytes:
            out["anyOf"] = {Json{{"type", "integer"}, {"minimum", 0}},
                            Json{{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)? ?([KMGT]iB|[kKMGT]B)$"}}};
            break;
        case ValueType::kList:
            out["type"] = "array";
            if (!key.children.empty()) out["items"] = value_schema(key.children.front());
            break;
        case ValueType::kMap: out = map_schema(key.children); break;
        case ValueType::kOther: out = Json::parse(key.json_schema.empty() ? "{}" : key.json_schema); break;
    }
    if (key.type == ValueType::kInt || key.type == ValueType::kFloat) add_range(out, key.min, key.max);
    if (key.optional) out = Json{{"anyOf", {out, Json{{"type", "null"}}}}};
    if (!key.description.empty())
        out["description"] =
            key.description + (key.unit.empty() || key.type == ValueType::kBytes ? "" : " (" + key.unit + ")");
    if (key.default_value) out["default"] = as_written(*key.default_value, key.type);
    return out;
}

KeyInfo key_of(const host::ParamManifest& p) {
    KeyInfo key{.name = p.name,
                .description = p.description,
                .unit = p.unit,
                .default_value = p.default_value,
                .required = !p.default_value,
                .min = p.min,
                .max = p.max,
                .choices = p.choices};
    key.type = p.type == "bool"    ? ValueType::kBool
               : p.type == "int"   ? ValueType::kInt
               : p.type == "float" ? ValueType::kFloat
               : p.type == "enum"  ? ValueType::kEnum
                                   : ValueType::kString;
    return key;
}

void add_top_level(Json& properties, const std::vector<KeyInfo>& keys) {
    for (const KeyInfo& key : keys) {
        Json schema = value_schema(key);
        if (key.name == "model") { // a folder, or the map
            const Json description = schema["description"];
            schema.erase("description");
            schema = Json{{"description", description}, {"anyOf", {Json{{"type", "string"}}, schema}}};
        }
        properties[key.name] = std::move(schema);
    }
}

}  // namespace

std::string slot_json_schema(const host::Registry& registry, const std::string& kind) {
    std::vector<std::string> names = registry.names(kind);
    Json rules = Json::array();
    for (const std::string& name : names) {
        std::vector<KeyInfo> keys;
        for (const host::ParamManifest& p : registry.first(kind, name)->params) keys.push_back(key_of(p));
        Json then = map_schema(keys);
        then["properties"]["plugin"] = Json{{"const", name}, {"description", registry.first(kind, name)->summary}};
        rules.push_back(Json{{"if", {{"properties", {{"plugin", {{"const", name}}}}}, {"required", {"plugin"}}}},
                             {"then", std::move(then)}});
    }
    if (const SlotInfo* slot = find_slot(kind); slot && !slot->choice) names.push_back("none");
    Json map{{"type", "object"}, {"properties", {{"plugin", {{"enum", names}}}}}};
    if (!rules.empty()) map["allOf"] = std::move(rules);
    return Json{{"anyOf", {Json{{"enum", names}}, map}}}.dump();
}

std::string json_schema_of(const std::vector<KeyInfo>& keys) { return map_schema(keys).dump(); }

std::string json_schema(const std::string& title, const std::vector<KeyInfo>& keys) {
    Json out{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
    out.update(map_schema(keys));
    return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string json_schema(const host::Registry& registry, const std::string& title,
                        const std::vector<KeyInfo>& further_keys) {
    Json properties{
        {"include",
         {{"description",
           "files that this one is laid over, relative to it; maps merge key by key, anything else is replaced"},
          {"anyOf", {Json{{"type", "string"}}, Json{{"type", "array"}, {"items", {{"type", "string"}}}}}}}}};
    add_top_level(properties, engine_config_table(registry).keys());
    add_top_level(properties, further_keys);
    const Json out{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                   {"title", title},
                   {"type", "object"},
                   {"properties", std::move(properties)},
                   {"additionalProperties", false}};
    return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace patchbay::config
