// Keys of an experiment file that name files.
#pragma once
#include <filesystem>
#include <string>

#include "experiment/one_of_table.hpp"

namespace patchbay::experiment {

// A file or folder beside the file that names it, if there is one, else in the current folder.
inline std::filesystem::path beside_or_here(const Node& given, const std::filesystem::path& path) {
    if (given.origin.kind != config::Origin::Kind::kFile || !given.origin.name) return path;
    const auto beside = (std::filesystem::path(*given.origin.name).parent_path() / path).lexically_normal();
    std::error_code error;
    return std::filesystem::exists(beside, error) ? beside : path;
}

template <class T>
void path_key(Table<T>& table, std::filesystem::path T::*field, std::string description,
              std::string name = "path") {
    KeyInfo info{.name = std::move(name),
                         .type = config::ValueType::kString,
                         .description = std::move(description)};
    value_key(table, info, field, [info](const Node& given, Faults& faults) -> std::optional<std::filesystem::path> {
        const auto text = config::read_string(given, info, faults);
        if (!text) return std::nullopt;
        return beside_or_here(given, *text);
    }).required();
}

}  // namespace patchbay::experiment
