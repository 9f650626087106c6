// Lengths in the file of an experiment: 128, [16, 64], {lognormal: {…}}.
#pragma once
#include "experiment/one_of_table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

// what: the key, for errors.
std::optional<Length> read_length(const config::Node& given, const std::string& what, config::Faults&);

template <class T, class L> // L: Length or std::optional<Length>
void length_key(config::Table<T>& table, std::string name, L T::*field, std::string description) {
    config::KeyInfo info{.name = std::move(name),
                         .description = std::move(description),
                         .unit = "tokens",
                         .json_schema = R"({"type": ["integer", "array", "object"]})"};
    value_key(table, info, field, [what = "'" + info.name + "'"](const config::Node& given, config::Faults& faults) {
        return read_length(given, what, faults);
    });
}

}  // namespace patchbay::experiment
