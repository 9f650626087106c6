#include "serve/api_keys.hpp"

#include <algorithm>
#include <string_view>

namespace patchbay::serve {

std::optional<uint32_t> ApiKeys::find(const HttpRequest& request) const {
    if (keys_.empty()) return 0;
    std::string_view given = request.header("authorization");
    constexpr std::string_view kScheme = "bearer ";
    const bool bearer = given.size() > kScheme.size() &&
                        std::equal(kScheme.begin(), kScheme.end(), given.begin(),
                                   [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
    if (!bearer) return std::nullopt;
    given.remove_prefix(kScheme.size());
    std::optional<uint32_t> found;
    for (uint32_t i = 0; i < keys_.size(); ++i) {
        const std::string& key = keys_[i];
        unsigned different = key.size() != given.size(); // in a time that says nothing about the key
        for (size_t n = 0; n < given.size(); ++n)
            different |= static_cast<unsigned char>(given[n]) ^ static_cast<unsigned char>(key[n % key.size()]);
        if (different == 0) found = i;
    }
    return found;
}

}  // namespace patchbay::serve
