// Which code a component is of: recorded with every result.
#pragma once
#include <string>

namespace patchbay::host {

struct Identity {
    std::string kind, name, version, sha256, build, path;
};

}  // namespace patchbay::host
