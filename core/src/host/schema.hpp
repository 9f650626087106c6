// Settings against a component's parameter schema. Used by the host before create(), and by config, which adds places.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/settings.hpp"

namespace patchbay::host {

struct ComponentManifest;
struct ParamManifest;

struct SettingFault {
    std::string key;  // the offending key; a missing one is named too
    std::string text; // "unknown key 'agein' (did you mean 'ageing'?)"
};

std::vector<SettingFault> check_settings(const ComponentManifest&, const Settings&);
// Why a value does not fit a parameter, or nothing.
std::optional<std::string> check_value(const ParamManifest&, std::string_view value);
Settings with_defaults(const ComponentManifest&, const Settings&);
// Values that are paths, meant from the current directory; what is not there stays as it is.
Settings with_absolute_paths(const ComponentManifest&, Settings);
std::string absolute_path(const std::string&);

}  // namespace patchbay::host
