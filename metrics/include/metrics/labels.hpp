// The labels of a series.
#pragma once
#include <map>
#include <string>

namespace patchbay::metrics {

using Labels = std::map<std::string, std::string>;

}  // namespace patchbay::metrics
