// When requests come, how long users think, which rows of a trace a repeat has: as the file of an experiment says it.
#pragma once
#include "experiment/one_of_table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

std::optional<Arrivals> read_arrivals(const config::Node& given, config::Faults&);
std::optional<Windows> read_windows(const config::Node& given, config::Faults&);
std::optional<Duration> read_duration(const config::Node& given, const std::string& what, config::Faults&);

template <class T>
void duration_key(config::Table<T>& table, std::string name, Duration T::*field, std::string description) {
    config::KeyInfo info{.name = std::move(name),
                         .description = std::move(description),
                         .unit = "s",
                         .json_schema = R"({"type": ["number", "object"]})"};
    value_key(table, info, field, [what = "'" + info.name + "'"](const config::Node& given, config::Faults& faults) {
        return read_duration(given, what, faults);
    });
}

}  // namespace patchbay::experiment
