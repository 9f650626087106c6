#include "weights/single_value.hpp"

#include "base/refusals.hpp"
#include "patchbay/sdk/config_shape.hpp"

namespace patchbay::weights {

Result<std::optional<std::string>> single_value(const FlatConfig& config, const std::string& key) {
    for (const auto& [other, value] : config)
        if (const std::string fault = shape_fault(key, other, value, "a single value"); !fault.empty())
            return invalid(fault);
    const auto at = config.find(key);
    if (at == config.end() || at->second == "null") return std::optional<std::string>();
    return std::optional(at->second);
}

}  // namespace patchbay::weights
