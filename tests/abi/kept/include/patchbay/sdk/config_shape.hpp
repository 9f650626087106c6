// patchbay/sdk/config_shape.hpp - whether the flattened keys of a config.json have the shape that their reader expects:
// one value where it reads one, maps and lists where the key goes through them. For model plugins and the host.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

namespace patchbay {
namespace detail {

inline bool is_index(std::string_view segment) {
    return !segment.empty() && std::all_of(segment.begin(), segment.end(), [](char c) { return c >= '0' && c <= '9'; });
}

inline const char* container_of(std::string_view segment) { return is_index(segment) ? "list" : "map"; }

}  // namespace detail

// An untrusted text as an error shows it: of a readable length.
inline std::string shown(std::string_view text) {
    constexpr size_t kMaxBytes = 80;
    return "'" + std::string(text.substr(0, kMaxBytes)) + (text.size() > kMaxBytes ? "…'" : "'");
}

// For a reader of the single value `key` ("rope_scaling.factor"): why the key `other`, which is there with `value`,
// says that the configuration has another shape. Empty: it does not. Where `other` is `key` itself, only its being an
// empty list or map is a fault. `expected`: what the reader reads, for the text.
inline std::string shape_fault(std::string_view key, std::string_view other, std::string_view value,
                               std::string_view expected) {
    const auto segment = [](std::string_view path, size_t begin) {
        return path.substr(begin, path.find('.', begin) - begin);
    };
    const auto text = [](std::string_view what, const std::string& is, std::string_view wanted) {
        return std::string(what) + " is " + is + ", expected " + std::string(wanted);
    };
    for (size_t begin = 0;;) {
        const std::string_view ours = segment(key, begin), theirs = segment(other, begin);
        if (ours != theirs) {
            if (begin == 0 || detail::is_index(ours) == detail::is_index(theirs)) return "";
            return text(key.substr(0, begin - 1), std::string("a ") + detail::container_of(theirs),
                        std::string("a ") + detail::container_of(ours));
        }
        const size_t end = begin + ours.size();
        if (end == key.size() && end == other.size()) {
            if (value != "[]" && value != "{}") return "";
            return text(key, value == "[]" ? "an empty list" : "an empty map", expected);
        }
        if (end == key.size())
            return text(key, std::string("a ") + detail::container_of(segment(other, end + 1)), expected);
        if (end == other.size()) { // a parent of the key
            const bool list = detail::is_index(segment(key, end + 1));
            if (value == "null" || value == (list ? "[]" : "{}")) return "";
            const std::string is = value == "[]" ? "an empty list" : value == "{}" ? "an empty map" : shown(value);
            return text(other, is, list ? "a list" : "a map");
        }
        begin = end + 1;
    }
}

}  // namespace patchbay
