// Which version of Unicode the libraries know that classify characters.
#pragma once
#include <string>
#include <vector>

namespace patchbay::text {

struct UnicodeTables {
    std::string library; // "ICU 72.1"
    int major = 0, minor = 0;
};
std::vector<UnicodeTables> unicode_tables();

}  // namespace patchbay::text
