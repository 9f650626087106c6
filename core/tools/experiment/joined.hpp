// Words with a comma between them, for messages and tables of experiments.
#pragma once

#include <string>
#include <vector>

namespace patchbay::experiment {

/// The words with ", " between them.
inline std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
    return out;
}

}  // namespace patchbay::experiment
