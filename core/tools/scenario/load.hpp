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
    Value shape;         // empty; of what alternative it is. Totals: the keys that they may have
    const char* description;
};
const std::vector<SubjectInfo>& subjects();
const SubjectInfo& subject_info(Subject);
bool asks_for(const Expectation&, Subject); // it is of the subject, or totals it
bool is_of_plan(const Expectation&);     // a step is begun to know it
bool is_of_blocks(const Expectation&);   // it names blocks, or counts what becomes of them

}  // namespace patchbay::scenario
