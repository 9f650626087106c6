// What an engine has, as the values that a scenario expects: taken from it, and written as a file would write them.
// Used by scenario/play.cpp.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/script.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

struct Known { // of one request
    engine::RequestId id = 0;
    Tokens output;
    uint32_t cached_tokens = 0, preemptions = 0; // at its end
};

struct State { // at one moment
    const std::map<std::string, Known>& requests;
    const std::map<engine::RequestId, std::string>& names;
    const std::vector<pb_plan_item>& plan; // of the step under way, or the latest one
    engine::View engine;
    const Words& finished; // not asked for yet
    uint64_t hit_tokens = 0, query_tokens = 0, plan_faults = 0;
    std::string policy;
};

// The value to hold against `expected`: of its alternative, and with its requests where it names some of many.
Value value_of(Subject, const Value& expected, const State&);
std::string text_of(const Value&); // {a: 80, b: 20}

}  // namespace patchbay::scenario
