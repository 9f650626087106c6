// What a flag's value must be, checked before anything runs: a fault is bad usage.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"

namespace patchbay::cli {

namespace detail {

template <class V>
std::string plain_text(V value) { // 0.000001 and not 1e-06
    if constexpr (std::is_floating_point_v<V>) {
        if (value > 0 && value < V(1e-6)) return number_text(value);
        char digits[400]; // of the largest double
        return {digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed).ptr};
    } else {
        return number_text(value);
    }
}

}  // namespace detail

// For CLI::Option::transform(): a number in [low, high] as V. A sign that V does not have, an overflow and NaN are
// refused; 010 becomes 10, as CLI11 would take it for an octal number.
template <class V>
CLI::Validator within(V low, V high = std::numeric_limits<V>::max()) {
    const auto check = [low, high](std::string& text) {
        const auto value = parse_number<V>(text);
        if (value && *value >= low && *value <= high) {
            if constexpr (std::is_integral_v<V>) text = number_text(*value);
            return std::string();
        }
        const bool open = high == std::numeric_limits<V>::max();
        const std::string range = open ? "at least " + detail::plain_text(low)
                                       : detail::plain_text(low) + " to " + detail::plain_text(high);
        return "got '" + text + "', expected " + range;
    };
    return CLI::Validator(check, "");
}

// A flag for a number in [low, high] whose default --help shows; for a vector a list of them, with commas.
template <class V>
CLI::Option* add_number(CLI::App& app, const char* flag, V& out, const char* help, std::type_identity_t<V> low,
                        std::type_identity_t<V> high = std::numeric_limits<V>::max()) {
    return app.add_option(flag, out, help)->transform(within<V>(low, high))->capture_default_str();
}
template <class V>
CLI::Option* add_number(CLI::App& app, const char* flag, std::vector<V>& out, const char* help,
                        std::type_identity_t<V> low, std::type_identity_t<V> high) {
    return app.add_option(flag, out, help)->delimiter(',')->transform(within<V>(low, high))->capture_default_str();
}

// A flag whose value is one of the words.
template <class V>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, V& out, const std::string& help,
                        const std::vector<std::pair<std::string, V>>& choices) {
    std::vector<std::string> words;
    std::string shown;
    for (const auto& [word, value] : choices) {
        words.push_back(word);
        shown += (shown.empty() ? "" : "|") + word;
    }
    const auto set = [&out, choices](const std::string& text) {
        for (const auto& [word, value] : choices)
            if (text == word) out = value;
    };
    const auto check = [words](std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        return "got '" + text + "', expected " + listed(words, " or ") + did_you_mean(text, words);
    };
    return app.add_option_function<std::string>(flag, set, help)->check(CLI::Validator(check, ""))->type_name(shown);
}

}  // namespace patchbay::cli
