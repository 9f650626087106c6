// Words of a message as one text.
#pragma once
#include <string>
#include <vector>

namespace patchbay {

// "a, b, c"
inline std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
    return out;
}

// "a, b and c", where `last` is " and ".
inline std::string listed(const std::vector<std::string>& words, const std::string& last) {
    std::string out;
    for (size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
    return out;
}

// "1 run", "3 runs"
inline std::string number_of(size_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace patchbay
