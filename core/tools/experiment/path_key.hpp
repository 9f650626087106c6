// Keys of an experiment file that name files.
#pragma once
#include <filesystem>
#include <string>

#include "config/table.hpp"

namespace patchbay::experiment {

// A file beside the one that names it, if there is one, else in the current folder.
template <class T>
void path_key(config::Table<T>& table, std::filesystem::path T::*field, std::string description,
              std::string name = "path") {
    using config::Faults;
    using config::Node;
    config::KeyInfo info{.name = std::move(name),
                         .type = config::ValueType::kString,
                         .description = std::move(description)};
    table.custom(info, [field, info](const Node* given, T& out, Faults& faults) {
        if (!given) return Node{};
        if (const auto text = config::read_string(*given, info, faults)) {
            out.*field = *text;
            if (given->origin.kind == config::Origin::Kind::kFile && given->origin.name) {
                const auto beside =
                    (std::filesystem::path(*given->origin.name).parent_path() / *text).lexically_normal();
                std::error_code error;
                if (std::filesystem::exists(beside, error)) out.*field = beside;
            }
        }
        return *given;
    }).required();
}

}  // namespace patchbay::experiment
