// What a flag's value must be, checked before anything runs: a fault is bad usage. For CLI::Option::check().
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

namespace patchbay::cli {

namespace detail {

template <class V>
std::string text_of(V value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace detail

// A number in [low, high] as V; a sign that V does not have, an overflow and NaN are refused.
template <class V>
CLI::Validator within(V low, V high = std::numeric_limits<V>::max()) {
    const auto check = [low, high](std::string& text) {
        V value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = end == text.data() + text.size();
        if (error == std::errc{} && whole && value >= low && value <= high) return std::string();
        const bool open = high == std::numeric_limits<V>::max();
        const std::string range = open ? "at least " + detail::text_of(low)
                                       : detail::text_of(low) + " to " + detail::text_of(high);
        return "got '" + text + "', expected " + range;
    };
    return CLI::Validator(check, "");
}

}  // namespace patchbay::cli
