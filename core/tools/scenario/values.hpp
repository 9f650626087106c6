// The values in scenario files, read with every fault at its place, and their JSON Schemas. Used by load.cpp and
// request_table.cpp.
#pragma once
#include <memory>
#include <string>

#include "config/table.hpp"
#include "scenario/load.hpp"

namespace patchbay::scenario {

inline constexpr double kMostTokens = 1 << 20; // of one prompt or output
inline constexpr double kMostBeams = 16;       // of a request
inline constexpr double kMostSteps = 100'000;
inline constexpr double kMostMs = 1e12;

inline constexpr const char* kIdsSchema = R"({"type": "array", "items": {"type": "string"}})";
inline constexpr const char* kTokensSchema = R"({"type": "array", "items": {"type": "integer"}})";
inline constexpr const char* kPathsSchema =
    R"({"type": "array", "items": {"type": ["integer", "array"], "items": {"type": "integer"}}})";
std::string map_of(const std::string& value_schema);
std::string schema_of(const Value& shape);
// A key that no type of the table says.
config::KeyInfo other(std::string name, std::string schema, std::string meaning);

void wrong(const config::Node&, const std::string& name, const std::string& expected, config::Faults&);
Tokens read_tokens(const config::Node&, const std::string& name, config::Faults&);
Names read_names(const config::Node&, const std::string& name, config::Faults&);
Texts read_texts(const config::Node&, const std::string& name, config::Faults&);
Trees read_trees(const config::Node&, const std::string& name, config::Faults&);
Number read_number(const config::Node&, const std::string& name, config::Faults&); // one, or a range
Value read_value(const config::Node&, const SubjectInfo&, config::Faults&);

config::Table<Arrival> request_table(); // of what is added
config::Table<Model> model_table();

}  // namespace patchbay::scenario
