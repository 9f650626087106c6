#include "grammar/schema_instance.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "grammar/schema_keywords.hpp"
#include "grammar/schema_values.hpp"

namespace patchbay::grammar {
namespace {

using Verdict = std::optional<bool>;

Verdict all_of(Verdict a, Verdict b) {
    if (a == false || b == false) return false;
    return a && b ? Verdict(true) : std::nullopt;
}

Verdict opposite(Verdict v) { return v ? Verdict(!*v) : v; }

class Evaluation {
  public:
    Evaluation(const InstanceCheck& check, const Json& schema, const Json& value, int depth)
        : check_(check), s_(schema), v_(value), depth_(depth) {}

    Verdict run() {
        if (s_.is_boolean()) return s_.get<bool>();
        if (!s_.is_object() || depth_ > 60 || check_.steps < 10) return std::nullopt;
        check_.steps -= 10;
        Verdict out = types();
        if (v_.is_object()) out = all_of(out, members());
        for (const auto& [key, value] : s_.get_ref<const Json::object_t&>()) {
            if (out == false) return out;
            out = all_of(out, combined(key, value));
            if (v_.is_number()) out = all_of(out, number(key, value));
            if (v_.is_string()) out = all_of(out, string(key, value));
            if (v_.is_array()) out = all_of(out, array(key, value));
            if (v_.is_object()) out = all_of(out, object(key, value));
        }
        return out;
    }

  private:
    Verdict inner(const Json& schema, const Json& value) const {
        return Evaluation(check_, schema, value, depth_ + 1).run();
    }

    Verdict types() const {
        Json typed = Json::object();
        if (!s_.contains("type")) return true;
        typed["type"] = s_["type"];
        const auto allowed = types_of({&typed, ""});
        const Json one{{"const", v_}};
        const auto own = types_of({&one, ""});
        if (!allowed || !own) return std::nullopt;
        return (allowed->allowed & own->allowed) != 0;
    }

    Verdict combined(const std::string& key, const Json& value) const {
        if (key == "$ref") {
            const Json* target = check_.follow(s_);
            return target ? inner(*target, v_) : std::nullopt;
        }
        if (key == "const" || key == "enum") {
            if (key == "const") return same_value(value, v_);
            if (!value.is_array()) return std::nullopt;
            return std::any_of(value.begin(), value.end(), [&](const Json& each) { return same_value(each, v_); });
        }
        if (key == "not") return opposite(inner(value, v_));
        if (key == "if") {
            const Verdict condition = inner(value, v_);
            if (!condition) return std::nullopt;
            const char* next = *condition ? "then" : "else";
            return s_.contains(next) ? inner(s_[next], v_) : true;
        }
        if (key == "$dynamicRef" || key == "$recursiveRef") return std::nullopt;
        if (key != "allOf" && key != "anyOf" && key != "oneOf") return true;
        size_t valid = 0, invalid = 0;
        for (const Json& part : value) {
            const Verdict one = inner(part, v_);
            valid += one == true;
            invalid += one == false;
        }
        const bool known = valid + invalid == value.size();
        if (key == "allOf") return invalid ? Verdict(false) : known ? Verdict(true) : std::nullopt;
        if (key == "anyOf") return valid ? Verdict(true) : known ? Verdict(false) : std::nullopt;
        return known ? Verdict(valid == 1) : std::nullopt;
    }

    Verdict number(const std::string& key, const Json& limit) const {
        const bool low = key == "minimum" || key == "exclusiveMinimum";
        if (!low && key != "maximum" && key != "exclusiveMaximum")
            return key == "multipleOf" ? std::nullopt : Verdict(true);
        if (limit.is_boolean() && key.starts_with("exclusive")) return true; // draft 4: of the other bound
        if (!limit.is_number()) return std::nullopt;
        const char* strict = low ? "exclusiveMinimum" : "exclusiveMaximum";
        const bool excluded = key == strict || (s_.contains(strict) && s_[strict] == true);
        if (same_value(v_, limit)) return !excluded;
        const double a = v_.get<double>(), b = limit.get<double>();
        if (a == b) return std::nullopt; // apart by less than doubles are
        return low ? a > b : a < b;
    }

    // About the size of a text, an array or an object.
    Verdict counted(const std::string& key, const Json& limit, const char* min, const char* max, size_t n) const {
        if (key != min && key != max) return true;
        if (!limit.is_number()) return std::nullopt;
        const auto size = static_cast<double>(n);
        return key == min ? size >= limit.get<double>() : size <= limit.get<double>();
    }

    Verdict string(const std::string& key, const Json& value) const {
        const auto& text = v_.get_ref<const std::string&>();
        if (key == "pattern") return value.is_string() ? check_.matches(value.get<std::string>(), text) : std::nullopt;
        if (key == "format") return std::nullopt;
        return counted(key, value, "minLength", "maxLength", count_characters(text));
    }

    Verdict array(const std::string& key, const Json& value) const {
        const bool listed = key == "prefixItems" || (key == "items" && value.is_array());
        Verdict out = counted(key, value, "minItems", "maxItems", v_.size());
        if (listed && value.is_array()) {
            for (size_t i = 0; i < std::min(v_.size(), value.size()); ++i) out = all_of(out, inner(value[i], v_[i]));
        } else if (key == "items" || key == "additionalItems") {
            const char* list = key == "items" ? "prefixItems" : "items";
            const bool others = key == "additionalItems" && !(s_.contains("items") && s_["items"].is_array());
            const size_t from = s_.contains(list) && s_[list].is_array() ? s_[list].size() : 0;
            for (size_t i = from; i < v_.size() && !others; ++i) out = all_of(out, inner(value, v_[i]));
        } else if (key == "uniqueItems" && value != false) {
            for (size_t i = 0; i < v_.size(); ++i)
                for (size_t k = 0; k < i; ++k)
                    if (same_value(v_[i], v_[k])) return false;
        } else if (key == "contains") {
            return all_of(out, contains(value));
        } else if (key == "unevaluatedItems") {
            return std::nullopt;
        }
        return out;
    }

    Verdict contains(const Json& schema) const {
        double valid = 0;
        for (const Json& each : v_) {
            const Verdict one = inner(schema, each);
            if (!one) return one;
            valid += *one;
        }
        for (const char* keyword : {"minContains", "maxContains"})
            if (s_.contains(keyword) && !s_[keyword].is_number()) return std::nullopt;
        return valid >= s_.value("minContains", 1.0) && valid <= s_.value("maxContains", valid);
    }

    Verdict object(const std::string& key, const Json& value) const {
        Verdict out = counted(key, value, "minProperties", "maxProperties", v_.size());
        if (key == "required") {
            if (!value.is_array()) return std::nullopt;
            for (const Json& name : value)
                if (!name.is_string() || !v_.contains(name.get<std::string>())) return false;
        } else if (key == "properties" || key == "patternProperties" || key == "additionalProperties") {
            return true; // all at once, below
        } else if (key == "propertyNames") {
            for (const auto& [name, part] : v_.items()) out = all_of(out, inner(value, Json(name)));
        } else if (key.starts_with("depend") || key == "unevaluatedProperties") {
            return std::nullopt;
        }
        return out;
    }

    Verdict members() const {
        Verdict out = true;
        for (const auto& [name, part] : v_.get_ref<const Json::object_t&>()) {
            bool named = false;
            if (s_.contains("properties") && s_["properties"].is_object() && s_["properties"].contains(name)) {
                named = true;
                out = all_of(out, inner(s_["properties"][name], part));
            }
            if (s_.contains("patternProperties") && s_["patternProperties"].is_object())
                for (const auto& [pattern, value] : s_["patternProperties"].get_ref<const Json::object_t&>()) {
                    const Verdict own = check_.matches(pattern, name);
                    if (!own) return std::nullopt;
                    if (!*own) continue;
                    named = true;
                    out = all_of(out, inner(value, part));
                }
            if (!named && s_.contains("additionalProperties"))
                out = all_of(out, inner(s_["additionalProperties"], part));
        }
        return out;
    }

    const InstanceCheck& check_;
    const Json& s_;
    const Json& v_;
    int depth_;
};

}  // namespace

std::optional<bool> InstanceCheck::valid(const Json& schema, const Json& value) const {
    return Evaluation(*this, schema, value, 0).run();
}

}  // namespace patchbay::grammar
