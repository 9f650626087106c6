// When requests come, how long users think, which rows of a trace a repeat has: as the file of an experiment says it.
#pragma once
#include "experiment/one_of_table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

std::optional<Arrivals> read_arrivals(const Node& given, Faults&);
std::optional<Windows> read_windows(const Node& given, Faults&);
std::optional<Duration> read_duration(const Node& given, const std::string& key, Faults&);

template <class T>
void duration_key(Table<T>& table, std::string name, Duration T::*field, std::string description) {
    KeyInfo info{.name = std::move(name),
                         .description = std::move(description),
                         .unit = "s",
                         .json_schema = R"({"type": ["number", "object"]})"};
    value_key(table, info, field, [key = info.name](const Node& given, Faults& faults) {
        return read_duration(given, key, faults);
    });
}

}  // namespace patchbay::experiment
