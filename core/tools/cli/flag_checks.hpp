// What a flag's value must be, checked before anything runs: a fault is bad usage. For CLI::Option::check().
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "base/numbers.hpp"

namespace patchbay::cli {

// A number in [low, high] as V; a sign that V does not have, an overflow and NaN are refused.
template <class V>
CLI::Validator within(V low, V high = std::numeric_limits<V>::max()) {
    const auto check = [low, high](std::string& text) {
        const auto value = parse_number<V>(text);
        if (value && *value >= low && *value <= high) return std::string();
        const bool open = high == std::numeric_limits<V>::max();
        const std::string range = open ? "at least " + number_text(low) : number_text(low) + " to " + number_text(high);
        return "got '" + text + "', expected " + range;
    };
    return CLI::Validator(check, "");
}

}  // namespace patchbay::cli
