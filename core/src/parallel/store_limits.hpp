// What a device may keep in the store that the ranks share, as pb_group says: keys of 1 to 128 of a-z, A-Z, 0-9 and
// ./_-, and values of up to 64 KiB.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace patchbay::parallel {

inline constexpr size_t kMaxDeviceKey = 128;          // characters
inline constexpr uint64_t kMaxStoreValue = 64u << 10; // bytes

inline bool is_device_key(std::string_view key) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/' ||
               c == '_' || c == '-';
    };
    return !key.empty() && key.size() <= kMaxDeviceKey && std::ranges::all_of(key, is_allowed);
}
inline bool may_be_stored(std::string_view key, uint64_t bytes) {
    return is_device_key(key) && bytes <= kMaxStoreValue;
}

}  // namespace patchbay::parallel
