// Scenario files: from YAML to scenario/scenario.hpp, with every fault at its place; and the schema that editors use.
#pragma once
#include <string>

#include "base/result.hpp"
#include "config/document.hpp"
#include "host/registry.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

// Failures are lines of "file:line:column: what is wrong".
Result<Scenario> load(const config::Node& root, const host::Registry&, const Limits& = {});
// JSON Schema (draft 2020-12), from the table that load() reads by.
std::string json_schema();

struct SubjectInfo {
    Subject subject;
    const char* name;    // in the file
    Value shape;         // empty; of what alternative it is
    const char* meaning;
};
const std::vector<SubjectInfo>& subjects();
bool is_of_plan(Subject); // a step is begun to know it

}  // namespace patchbay::scenario
