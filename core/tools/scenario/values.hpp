// The values in scenario files, read with every fault at its place, and their JSON Schemas. Used by load.cpp and
// request_table.cpp.
#pragma once
#include <memory>
#include <string>

#include "config/table.hpp"
#include "scenario/load.hpp"

namespace patchbay::scenario {

using config::Entry;
using config::Faults;
using config::KeyInfo;
using config::Node;
using config::NodeKind;
using config::Table;
using config::ValueType;

inline constexpr double kMaxTokens = 1 << 20; // of one prompt or output
inline constexpr double kMaxBeams = 16;       // of a request
inline constexpr double kMaxSteps = 100'000;
inline constexpr double kMaxMs = 1e12;

inline constexpr const char* kIdsSchema = R"({"type": "array", "items": {"type": "string"}})";
inline constexpr const char* kTokensSchema = R"({"type": "array", "items": {"type": "integer"}})";
inline constexpr const char* kPathsSchema =
    R"({"type": "array", "items": {"type": ["integer", "array"], "items": {"type": "integer"}}})";
std::string map_of(const std::string& value_schema);
std::string schema_of(const Value& shape);
// A key that no type of the table says.
KeyInfo other(std::string name, std::string schema, std::string description);

void wrong(const Node&, const std::string& name, const std::string& expected, Faults&);
Tokens read_tokens(const Node&, const std::string& name, Faults&);
Names read_names(const Node&, const std::string& name, Faults&);
Texts read_texts(const Node&, const std::string& name, Faults&);
Trees read_trees(const Node&, const std::string& name, Faults&);
Number read_number(const Node&, const std::string& name, Faults&); // one, or a range
Value read_value(const Node&, const SubjectInfo&, Faults&);

Table<Arrival> request_table(); // of what is added
Table<Model> model_table();

}  // namespace patchbay::scenario
