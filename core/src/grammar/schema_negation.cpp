#include "grammar/schema_negation.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "grammar/schema_values.hpp"

namespace patchbay::grammar {
namespace {

constexpr int kMaxNegationDepth = 8; // of references and combinations
constexpr size_t kMaxWays = 64;
constexpr uint64_t kVisit = 256; // bytes, as which a look at a schema counts

class Violations {
  public:
    Violations(const FollowReference& follow, size_t& budget) : follow_(follow), budget_(budget) {}

    std::vector<Json> of(const Json& s, int depth) {
        if (s.is_boolean()) return s.get<bool>() ? std::vector<Json>{} : std::vector<Json>{Json::object()};
        if (!s.is_object() || depth > kMaxNegationDepth || !pays(kVisit + s.size())) return {};
        std::vector<Json> out;
        const auto add = [&](Json one) {
            if (out.size() < kMaxWays && pays(8 * cost_of(one))) out.push_back(std::move(one));
            return out.size() < kMaxWays && budget_ > 0;
        };
        for (const auto& [key, value] : s.get_ref<const Json::object_t&>()) {
            if (out.size() == kMaxWays) break;
            combined(s, key, value, depth, add);
            scalars(s, key, value, add);
            containers(s, key, value, add);
        }
        return out;
    }

  private:
    using Add = std::function<bool(Json)>; // whether there is room for more

    bool pays(uint64_t cost) {
        budget_ = cost < budget_ ? budget_ - cost : 0;
        return budget_ > 0;
    }
    static Json negated(const Json& s) { return Json{{"not", s}}; }
    static Json both(Json a, Json b) { return Json{{"allOf", Json::array({std::move(a), std::move(b)})}}; }

    static Json item_not(const Json& schema, size_t position) {
        Json items = Json::array();
        for (size_t i = 0; i < std::min<size_t>(position, 200); ++i) items.push_back(true);
        items.push_back(negated(schema));
        return Json{{"type", "array"}, {"minItems", position + 1}, {"prefixItems", std::move(items)}};
    }

    void combined(const Json& s, const std::string& key, const Json& value, int depth, const Add& add) {
        if (key == "$ref") {
            if (const Json* target = follow_(s))
                for (Json& each : of(*target, depth + 1)) add(std::move(each));
        } else if (key == "allOf" && value.is_array()) {
            for (const Json& part : value)
                for (Json& each : of(part, depth + 1))
                    if (!add(std::move(each))) return;
        } else if ((key == "anyOf" || key == "oneOf") && value.is_array()) { // none of them holds
            Json none = Json::array();
            for (const Json& part : value) none.push_back(negated(part));
            add(Json{{"allOf", std::move(none)}});
            if (key == "oneOf" && value.size() == 2) add(both(value[0], value[1]));
        } else if (key == "not") {
            add(value);
        } else if (key == "if") {
            if (s.contains("then")) add(both(value, negated(s["then"])));
            if (s.contains("else")) add(both(negated(value), negated(s["else"])));
        }
    }

    static void scalars(const Json& s, const std::string& key, const Json& value, const Add& add) {
        if (key == "type" || key == "enum" || key == "const") {
            add(negated(Json{{key, value}}));
        } else if (key == "pattern") {
            add(Json{{"type", "string"}, {"not", {{"pattern", value}}}});
        } else if (key == "multipleOf") {
            add(Json{{"type", "integer"}, {"not", {{"multipleOf", value}}}});
        } else if (value.is_number() && (key == "minimum" || key == "maximum")) {
            const std::string strict = key == "minimum" ? "exclusiveMinimum" : "exclusiveMaximum";
            const bool excluded = s.contains(strict) && s[strict] == true; // draft 4
            const char* below = excluded ? "maximum" : "exclusiveMaximum";
            const char* above = excluded ? "minimum" : "exclusiveMinimum";
            add(Json{{"type", "number"}, {key == "minimum" ? below : above, value}});
        } else if (value.is_number() && (key == "exclusiveMinimum" || key == "exclusiveMaximum")) {
            add(Json{{"type", "number"}, {key == "exclusiveMinimum" ? "maximum" : "minimum", value}});
        }
        counted(key, value, "string", "minLength", "maxLength", add);
        counted(key, value, "array", "minItems", "maxItems", add);
        counted(key, value, "object", "minProperties", "maxProperties", add);
    }

    static void counted(const std::string& key, const Json& value, const char* type, const char* min, const char* max,
                        const Add& add) {
        if (!value.is_number_unsigned()) return;
        const auto n = value.get<uint64_t>();
        if (key == min && n > 0) add(Json{{"type", type}, {max, n - 1}});
        if (key == max) add(Json{{"type", type}, {min, n + 1}});
    }

    static void containers(const Json& s, const std::string& key, const Json& value, const Add& add) {
        const auto lacks = [](const Json& name) {
            return Json{{"type", "object"}, {"properties", {{name.get<std::string>(), false}}}};
        };
        const auto has = [](const std::string& name) {
            return Json{{"type", "object"}, {"required", Json::array({name})}};
        };
        const bool named = value.is_object();
        if (key == "required" && value.is_array()) {
            for (const Json& name : value)
                if (name.is_string()) add(lacks(name));
        } else if (key == "properties" && named) {
            for (const auto& [name, part] : value.items()) {
                if (part == true || (part.is_object() && part.empty())) continue;
                Json one = has(name);
                one["properties"] = Json{{name, negated(part)}};
                add(std::move(one));
            }
        } else if (key == "dependentRequired" || key == "dependencies" || key == "dependentSchemas") {
            if (!named) return;
            for (const auto& [name, needs] : value.items()) {
                if (!needs.is_array()) {
                    add(both(has(name), negated(needs)));
                    continue;
                }
                for (const Json& other : needs)
                    if (other.is_string()) add(both(has(name), lacks(other)));
            }
        } else if (key == "prefixItems" || (key == "items" && value.is_array())) {
            for (size_t i = 0; value.is_array() && i < value.size(); ++i)
                if (value[i] != true && value[i] != Json::object()) add(item_not(value[i], i));
        } else if (key == "items" && s.contains("prefixItems") && s["prefixItems"].is_array()) {
            add(item_not(value, s["prefixItems"].size()));
        } else if (key == "additionalItems" && s.contains("items") && s["items"].is_array()) {
            add(item_not(value, s["items"].size()));
        } else if (key == "items" && !s.contains("prefixItems")) {
            add(Json{{"type", "array"}, {"contains", negated(value)}});
        } else if (key == "contains" && !s.contains("minContains") && !s.contains("maxContains")) {
            add(Json{{"type", "array"}, {"items", negated(value)}});
        }
    }

    const FollowReference& follow_;
    size_t& budget_;
};

}  // namespace

std::vector<Json> violations_of(const Json& schema, const FollowReference& follow, size_t& budget) {
    return Violations(follow, budget).of(schema, 0);
}

bool is_plain_not(const Json& negated) {
    if (!negated.is_object() || negated.size() != 1) return false;
    const std::string& key = negated.begin().key();
    return key == "type" || key == "enum" || key == "const" || key == "pattern" || key == "multipleOf";
}

}  // namespace patchbay::grammar
