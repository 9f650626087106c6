// Which code a component is of: recorded with every result.
#pragma once
#include <string>

namespace patchbay::host {

struct Identity {
    std::string kind, name, version, sha256, build, path;
    std::string component{}; // its name in its library where `name` is another: a model's is the path of its weights

    const std::string& name_in_library() const { return component.empty() ? name : component; }
};

}  // namespace patchbay::host
