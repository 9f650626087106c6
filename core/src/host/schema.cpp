#include "host/schema.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/numbers.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "host/manifest.hpp"

namespace patchbay::host {
namespace {

std::string plain(double x) {  // 8 rather than 8.000000, 1000000000 rather than 1e+09
    const bool whole = std::abs(x) < 1e15 && x == std::trunc(x);
    return whole ? number_text(static_cast<int64_t>(x)) : number_text(x);
}

std::optional<std::string> check_range(const ParamManifest& p, double value) {
    if ((!p.min || value >= *p.min) && (!p.max || value <= *p.max) && std::isfinite(value)) return std::nullopt;
    const std::string low = p.min ? plain(*p.min) : "-inf", high = p.max ? plain(*p.max) : "inf";
    return "'" + p.name + "' is " + plain(value) + ", expected " + low + " to " + high +
           (p.unit.empty() ? "" : " " + p.unit);
}

}  // namespace

std::optional<std::string> check_value(const ParamManifest& p, std::string_view value) {
    const auto wrong = [&](const std::string& expected) {
        return "'" + p.name + "' is '" + std::string(value) + "', expected " + expected;
    };
    if (p.type == "bool" && value != "true" && value != "false") return wrong("true or false");
    if (p.type == "int") {
        const auto x = parse_number<int64_t>(value);
        return x ? check_range(p, static_cast<double>(*x)) : wrong("a whole number");
    }
    if (p.type == "float") {
        const auto x = parse_number<double>(value);
        return x ? check_range(p, *x) : wrong("a number");
    }
    if (p.type == "enum" && std::find(p.choices.begin(), p.choices.end(), value) == p.choices.end())
        return wrong("one of " + joined(p.choices)) + did_you_mean(value, p.choices);
    return std::nullopt;
}

std::vector<SettingFault> check_settings(const ComponentManifest& component, const Settings& settings) {
    std::vector<SettingFault> faults;
    std::vector<std::string> known;
    for (const ParamManifest& p : component.params) known.push_back(p.name);
    for (const auto& [key, value] : settings) {
        const auto p = std::find_if(component.params.begin(), component.params.end(),
                                    [&wanted = key](const auto& q) { return q.name == wanted; });
        if (p == component.params.end()) {
            std::string text = "unknown key '" + key + "' of " + component.kind + " '" + component.name + "'" +
                               did_you_mean(key, known);
            if (known.empty()) text += " (it has none)";
            faults.push_back({key, text});
        } else if (auto why = check_value(*p, value)) {
            faults.push_back({key, *why});
        }
    }
    for (const ParamManifest& p : component.params)
        if (!p.default_value && !settings.contains(p.name))
            faults.push_back(
                {p.name, component.kind + " '" + component.name + "' needs '" + p.name + "': " + p.description});
    return faults;
}

Settings with_defaults(const ComponentManifest& component, const Settings& settings) {
    Settings out = settings;
    for (const ParamManifest& p : component.params)
        if (p.default_value) out.emplace(p.name, *p.default_value);
    return out;
}

std::string absolute_path(const std::string& given) {
    std::error_code error;
    const std::filesystem::path path(given);
    return std::filesystem::exists(path, error) ? std::filesystem::absolute(path, error).lexically_normal().string()
                                                : given;
}

Settings with_absolute_paths(const ComponentManifest& component, Settings settings) {
    for (const ParamManifest& p : component.params)
        if (const auto at = settings.find(p.name); p.unit == "path" && at != settings.end() && !at->second.empty())
            at->second = absolute_path(at->second);
    return settings;
}

}  // namespace patchbay::host
