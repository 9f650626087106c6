// What a flag's value must be, checked before anything runs: a fault is bad usage. For CLI::Option::check().
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "base/numbers.hpp"

namespace patchbay::cli {

namespace detail {

template <class V>
std::string plain_text(V value) { // 0.000001 and not 1e-06
    if constexpr (std::is_floating_point_v<V>) {
        char digits[400]; // of the largest double
        return {digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed).ptr};
    } else {
        return number_text(value);
    }
}

}  // namespace detail

// A number in [low, high] as V; a sign that V does not have, an overflow and NaN are refused.
template <class V>
CLI::Validator within(V low, V high = std::numeric_limits<V>::max()) {
    const auto check = [low, high](std::string& text) {
        const auto value = parse_number<V>(text);
        if (value && *value >= low && *value <= high) return std::string();
        const bool open = high == std::numeric_limits<V>::max();
        const std::string range = open ? "at least " + detail::plain_text(low)
                                       : detail::plain_text(low) + " to " + detail::plain_text(high);
        return "got '" + text + "', expected " + range;
    };
    return CLI::Validator(check, "");
}

}  // namespace patchbay::cli
