// What a component is configured with: plain data, apart from the checks of it (host/schema.hpp).
#pragma once
#include <map>
#include <string>

namespace patchbay::host {

using Settings = std::map<std::string, std::string>; // of a component, by the names of its parameters

}  // namespace patchbay::host
